//! Every list that a plan or an engine makes of a call has a most length: neither the work of a
//! call nor the size of its record depends on how much a tool or a policy says.

use kernel_support::driver::log::Log;
use kernel_support::driver::{Driver, agent, body, key, new_home, public, start, tool};
use syscap_audit::MemoryStore;
use syscap_format::{
    ApprovalChannel, Body, CallFields, Canonical, ConstraintId, ControlBody, DEMANDS_MAX,
    DIMENSIONS_MAX, Decision, EffectClass, EngineIdentity, Grants, Item, MATCHES_MAX, Manifest,
    OBLIGATIONS_MAX, Obligation, Param, ParamType, PolicyChange, PreconditionKind, Reason,
    RecordKind, Refused, Resource, Role, Scope, Seq, ToolGrant, TxOutcome, Verdict, matches_digest,
};
use syscap_kernel::{
    Condition, Demand, Demands, Event, Inspect, Kernel, Level, Parts, Permit, Plan, PolicyEngine,
    Question, Ran, Registry, Request, Tool, object_of,
};

/// Most resources, and most preconditions, that a person is shown.
const SHOWN_MAX: usize = 64;
const CONDITIONS_MAX: usize = 16;

const LISTS: [&str; 5] = ["demands", "untouched", "conditions", "matches", "obligations"];

/// How long the call wants a list to be.
fn wanted(args: Item<'_>, list: &str) -> Option<usize> {
    Some(usize::try_from(args.get(list)?.as_uint()?).unwrap())
}

/// A tool that says as much as its caller wants.
struct Wordy(Manifest);

impl Wordy {
    fn new() -> Self {
        let manifest = Manifest::new(tool("wordy"), EffectClass::LocalWrite)
            .needs("part")
            .needs("other")
            .param(Param::optional("ask", ParamType::Text, "what of a person is asked"));
        Self(LISTS.iter().fold(manifest, |manifest, list| {
            manifest.param(Param::optional(list, ParamType::Int, "how long it is"))
        }))
    }
}

impl Tool for Wordy {
    type Plan = WordyPlan;

    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn plan(&self, request: &Request<'_>) -> Result<WordyPlan, Refused> {
        let part = |n: usize| Demand {
            dimension: "part",
            resource: Resource::Int(i128::try_from(n).unwrap()),
            argument: "demands",
        };
        let parts = wanted(request.args, "demands").unwrap_or(1);
        let resources = (0..parts).map(part).collect();
        // The one that is declared is the last.
        let mut untouched = vec!["none"; wanted(request.args, "untouched").unwrap_or(1)];
        *untouched.last_mut().unwrap() = "other";
        Ok(WordyPlan { demands: Demands { resources, ..Demands::default() }, untouched })
    }

    fn inspector(&self, request: &Request<'_>) -> Result<Option<Box<dyn Inspect>>, Refused> {
        let look = |count| Box::new(Look(count)) as Box<dyn Inspect>;
        Ok(wanted(request.args, "conditions").map(look))
    }
}

struct Look(usize);

impl Inspect for Look {
    fn inspect(self: Box<Self>) -> Vec<Condition> {
        let seen = |n| Condition {
            kind: PreconditionKind::Digest,
            subject: format!("file {n}").into(),
            seen: None,
        };
        (0..self.0).map(seen).collect()
    }
}

struct WordyPlan {
    demands: Demands,
    untouched: Vec<&'static str>,
}

impl Plan for WordyPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn untouched(&self) -> &[&'static str] {
        &self.untouched
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        permit.ok(Canonical::null(), TxOutcome::Committed)
    }
}

/// A policy that does the same; its levels say everything so many times.
struct WordyEngine(usize);

impl PolicyEngine for WordyEngine {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("wordy"), version: 1 }
    }

    fn document(&self) -> Vec<u8> {
        vec![0xa0]
    }

    fn decide(&self, question: &Question<'_>) -> Decision {
        let matches = wanted(question.args, "matches").unwrap_or(0);
        let notices = wanted(question.args, "obligations").unwrap_or(0);
        let notices = (0..notices).map(|n| Obligation::notify(&format!("n{n:03}")));
        let asked = question.args.get("ask").and_then(|item| item.as_text());
        let elevated = Some(Obligation::elevated()).filter(|_| asked == Some("level"));
        let verdict = if asked.is_some() { Verdict::Ask } else { Verdict::Allow };
        let places: Vec<u16> = (0..u16::try_from(matches).unwrap()).collect();
        Decision {
            matches: (0..matches)
                .map(|n| ConstraintId::new(&format!("c/{n:05}")).unwrap())
                .collect(),
            match_count: u64::try_from(matches).unwrap(),
            matches_digest: (matches > MATCHES_MAX).then(|| matches_digest(&places)),
            obligations: elevated.into_iter().chain(notices).collect(),
            ..Decision::plain(verdict)
        }
    }

    fn level(&self, name: &str) -> Option<Level> {
        let client = [ApprovalChannel::Signer, ApprovalChannel::Elicitation];
        let means = if name == "client" { &client[..] } else { &client[..1] };
        Some(Level {
            keys: vec![public(&key(Role::Approver)); self.0],
            approvals: 1,
            means: means.repeat(self.0),
        })
    }
}

struct Home {
    driver: Driver<MemoryStore>,
    session: Seq,
}

impl Home {
    fn new() -> Self {
        const SAID: usize = 20_000;
        let mut registry = Registry::new();
        registry.add(Wordy::new()).unwrap();
        let parts = Parts { engine: Box::new(WordyEngine(SAID)), registry };
        let kernel = Kernel::create(new_home(9), parts, start()).unwrap();
        let mut driver = Driver::with(kernel, MemoryStore::new(), start());
        driver.boot();
        driver.set_tools();
        let policy = object_of(&WordyEngine(SAID)).hash();
        let change = PolicyChange { policy, shadow: None }.to_bytes();
        let control = driver.sign(&key(Role::Policy), RecordKind::Policy, change);
        let ticket = driver.ticket();
        let engine = Box::new(WordyEngine(SAID));
        driver.event(Event::Policy(ticket, control, None, vec![engine], None));
        driver.acked(ticket).unwrap();
        let scopes = ToolGrant::new()
            .with("part", Scope::ints(0, 1 << 20).unwrap())
            .with("other", Scope::ints(0, 0).unwrap());
        let mut token = body(driver.kernel.home(), 1, &agent("ada"));
        token.grants = Grants::new().with(tool("wordy"), scopes);
        let token = driver.issue(&token);
        let session = driver.session(&agent("ada"), token);
        Self { driver, session }
    }

    /// Calls; the reason of a refusal, and the last record.
    fn call(&mut self, args: &str) -> (Option<Reason>, Body) {
        let json = format!(r#"{{"tool_id": "wordy", "args": {{{args}}}}}"#);
        let ticket = self.driver.call(self.session, &json);
        self.driver.flush();
        assert_eq!(self.driver.error, None, "{args}");
        let log = Log::of(&self.driver.store);
        (self.driver.reply(ticket).reason(), log.record(log.records.len() - 1).body)
    }
}

fn fields(body: Body) -> CallFields {
    match body {
        Body::Outcome(outcome) => outcome.call,
        Body::Ask(ask) => ask.call,
        other => panic!("{:?}", other.kind()),
    }
}

#[test]
fn call_with_a_longer_list_is_refused() {
    let mut home = Home::new();
    let refused = |(reason, body): (Option<Reason>, Body), expected: Reason| {
        assert_eq!(reason, Some(expected));
        assert!(matches!(body, Body::Refusal(_)), "{:?}", body.kind());
    };
    for (list, most, beyond) in [
        ("demands", DEMANDS_MAX, Reason::TooLarge),
        ("untouched", DIMENSIONS_MAX, Reason::NotCompared),
        ("obligations", OBLIGATIONS_MAX, Reason::Denied),
    ] {
        assert_eq!(home.call(&format!(r#""{list}": {most}"#)).0, None, "{list}");
        for more in [most + 1, 100_000] {
            refused(home.call(&format!(r#""{list}": {more}"#)), beyond);
        }
    }
    // Nobody is asked who can't be shown all of it.
    for (list, most) in [("demands", SHOWN_MAX), ("conditions", CONDITIONS_MAX)] {
        let (reason, body) = home.call(&format!(r#""ask": "", "{list}": {most}"#));
        let Body::Ask(ask) = body else { panic!("{list}: {reason:?}") };
        let lists = [ask.resources.len(), ask.preconditions.len()];
        assert!(lists.contains(&most), "{list}: {lists:?}");
        refused(home.call(&format!(r#""ask": "", "{list}": {}"#, most + 1)), Reason::Asked);
    }
    assert_eq!(Log::of(&home.driver.store).faults(), []);
}

#[test]
fn longer_list_is_cut_where_nothing_follows_from_the_rest() {
    let mut home = Home::new();
    for matches in [MATCHES_MAX - 1, MATCHES_MAX, MATCHES_MAX + 1, 60_000] {
        let (reason, body) = home.call(&format!(r#""matches": {matches}"#));
        assert_eq!(reason, None, "{matches}");
        let decision = fields(body).decision.unwrap();
        assert_eq!(decision.matches.len(), matches.min(MATCHES_MAX));
        assert_eq!(decision.match_count, u64::try_from(matches).unwrap());
    }
    // A level names some of the approvers and of the channels, however often it does.
    for (asked, means) in [("level", 1), ("", 5)] {
        let (_, body) = home.call(&format!(r#""ask": "{asked}""#));
        let Body::Ask(ask) = body else { panic!("{asked}") };
        assert_eq!(ask.eligible, [public(&key(Role::Approver))], "{asked}");
        assert_eq!(ask.means.len(), means, "{asked}: {:?}", ask.means);
    }
    assert_eq!(Log::of(&home.driver.store).faults(), []);
}
