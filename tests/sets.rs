//! Answers to more than one call: bounded by what was shown, by number and by time.

use std::path::PathBuf;

use host_support::{end, new_home, records};
use syscap::Inspection;
use syscap::approvals::{Rows, SetTerms, WaitingCall};
use syscap::audit::SqliteReader;
use syscap::format::{
    ApprovalAnswer, Body, Commitment, EffectClass, Grants, Label, Name, ObligationKind, Param,
    ParamType, PublicKey, Refused, Resource, Rights, Role, Root, RootedPath, Rule, Scope, Seq,
    UnixMillis,
};
use syscap::host::{Failure, HostArgs, HostTool, Planned, ToolCall, Typed};
use syscap::kernel::vault_entry;
use syscap::policy::Policy;
use syscap::prelude::*;

/// Asks a person about writes, mails, what ends for good and what is long.
const POLICY: &str = r#"{"v": 1, "constraints": [
    {"id": "all", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
     "on_fail": "block", "reason": "Fine."},
    {"id": "writes", "effect": "deny", "subject": {"tool_id": "fs.write"},
     "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "Somebody looks at it."},
    {"id": "texts", "effect": "deny", "subject": {"tool_id": "fs.write"},
     "when": {"op": "eq", "args": ["args.text", "drop"]}, "on_fail": "ask", "reason": "That?"},
    {"id": "mails", "effect": "deny", "subject": {"tool_id": "team.mail"},
     "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "Somebody looks at it.",
     "obligations": [{"type": "approval_uses", "max": 3}]},
    {"id": "shells", "effect": "deny", "subject": {"tool_id": "team.sh"},
     "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "Somebody looks at it."},
    {"id": "runs", "effect": "deny", "subject": {"tool_id": "team.run"},
     "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "Somebody looks at it."},
    {"id": "ends", "effect": "deny", "subject": {"capability": "irreversible"},
     "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "It can't be undone."}
]}"#;

/// Touches as many teams as its argument lists, or none.
struct Mail;

impl Typed for Mail {
    type Answer = u64;

    fn plan(args: HostArgs<'_>) -> Result<Planned<Self>, Refused> {
        let teams = args.text("teams")?.split_whitespace();
        let none = Planned::new(Self);
        let none = if teams.clone().next().is_none() { none.untouched("team") } else { none };
        teams.map(str::to_owned).try_fold(none, |planned, team| {
            let name = Name::new(&team).map_err(|_| args.bad("teams", "short names"))?;
            Ok(planned.touches("team", Resource::Name(name), "teams"))
        })
    }

    fn run(self, _: &ToolCall) -> Result<u64, Failure> {
        Ok(1)
    }
}

fn mail(name: &str, effect: EffectClass) -> HostTool {
    let tool = HostTool::new(name, effect).unwrap().text("teams", "Whom.").needs("team");
    tool.honours(ObligationKind::ResultCap)
}

fn options() -> Options {
    let stranger = HostTool::new("web.read", EffectClass::ExternalRead)
        .unwrap()
        .labelled(Label::UNTRUSTED)
        .run(|_| Ok("buy now"));
    let named = mail("team.mail", EffectClass::ExternalWrite).typed::<Mail>();
    let ended = mail("team.end", EffectClass::Irreversible).typed::<Mail>();
    let shell = mail("team.sh", EffectClass::LocalWrite).arg(Param::optional(
        "script",
        ParamType::Code,
        "What to run.",
    ));
    let run = mail("team.run", EffectClass::LocalWrite).arg(Param::optional(
        "argv",
        ParamType::Argv,
        "What to run.",
    ));
    let options = Options::new().tool(named).unwrap().tool(ended).unwrap();
    let options = options.tool(shell.typed::<Mail>()).unwrap();
    options
        .tool(run.typed::<Mail>())
        .unwrap()
        .tool(stranger)
        .unwrap()
        .policy(Policy::from_json(POLICY.as_bytes()).unwrap())
}

struct World {
    _folder: tempfile::TempDir,
    home: PathBuf,
    rt: Runtime,
}

fn world() -> World {
    let (folder, home) = new_home();
    let rt = options().create(&home).unwrap();
    World { _folder: folder, home, rt }
}

impl World {
    fn token(&self) -> TokenId {
        let teams =
            Scope::names((0..70).map(|n| format!("t{n}")).chain(["x".repeat(200)])).unwrap();
        let tools = ["fs.write", "team.mail", "team.end", "team.sh", "team.run", "web.read"];
        let grant = Grant::to("a").tools(tools).write("workspace").scope("team", teams);
        let budget = Budget::standard().with(Dimension::Calls, 1_000);
        self.rt.issue(grant.budget(budget)).unwrap()
    }

    fn agent(&self) -> Session {
        self.rt.session("a", self.token()).unwrap()
    }

    fn log(&self) -> Inspection {
        Options::new().inspect(&self.home).unwrap()
    }

    fn rows(&self) -> Rows {
        Rows::open(&self.home).unwrap()
    }

    fn waiting(&self, ask: Seq) -> WaitingCall {
        let log = self.log();
        log.waiting().unwrap().into_iter().find(|call| call.ask == ask).unwrap()
    }

    /// The key that may answer.
    fn waiting_key(&self) -> PublicKey {
        self.rt.look(|kernel| kernel.sets().next().unwrap().eligible[0]).unwrap()
    }

    fn set(&self, ask: Seq, uses: u64) -> Result<Seq, Option<Reason>> {
        self.give(ask, &SetTerms { uses, scopes: None, expires: None })
    }

    fn give(&self, ask: Seq, terms: &SetTerms) -> Result<Seq, Option<Reason>> {
        self.rt.answer_set(ask, terms, None).map_err(|error| match error {
            Error::Refused(refused) => Some(refused.reason()),
            _ => None,
        })
    }

    fn end(self) {
        end(&self.rt, &self.home);
    }

    fn later(&self) -> UnixMillis {
        self.rt.look(|kernel| kernel.now()).unwrap().plus(3_600_000)
    }
}

/// What lets it run: an approval, or nothing did.
fn write(agent: &Session, path: &str, text: &str) -> ToolResult {
    agent.call("fs.write", args! { "path": path, "text": text, "parents": true }).unwrap()
}

fn below(path: &[&str], rights: Rights) -> Grants {
    let root = Root::Workspace(AgentId::new("a").unwrap());
    let rule = Rule { path: RootedPath::new(root, path).unwrap(), rights };
    let grant = syscap::format::ToolGrant::new().with("path", Scope::paths([rule]).unwrap());
    Grants::new().with(ToolId::new("fs.write").unwrap(), grant)
}

#[test]
fn a_set_is_for_what_was_shown_and_so_many_calls() {
    let world = world();
    let agent = world.agent();
    let ask = write(&agent, "a.txt", "1").ask().unwrap();
    let set = world.set(ask, 3).unwrap();
    // The one that asked, and others that touch the same, however they are put.
    for text in ["1", "2", "3"] {
        assert_eq!(write(&agent, "a.txt", text).reason(), None);
        assert!(write(&agent, "b.txt", text).ask().is_some());
    }
    // It is used up.
    assert!(write(&agent, "a.txt", "1").ask().is_some_and(|anew| anew > ask));
    let by = |record: syscap::format::Record| match record.body {
        Body::Intent(intent) => Some(intent.approval),
        _ => None,
    };
    let uses: Vec<_> = records(&world.home).into_iter().filter_map(by).collect();
    assert_eq!(uses, [Some(set); 3]);
    assert_eq!(world.rt.look(|kernel| kernel.sets().count()).unwrap(), 0);
    world.end();
}

#[test]
fn a_set_without_an_end_ends_with_its_session() {
    let world = world();
    let token = world.token();
    let first = world.rt.session("a", token).unwrap();
    let ask = write(&first, "a.txt", "1").ask().unwrap();
    world.set(ask, 9).unwrap();
    // Not in another session of the same token.
    let second = world.rt.session("a", token).unwrap();
    assert!(write(&second, "a.txt", "2").ask().is_some());
    assert_eq!(write(&first, "a.txt", "2").reason(), None);
    first.close().unwrap();
    assert_eq!(world.rt.look(|kernel| kernel.sets().count()).unwrap(), 0);
    // With an end it is for the token's sessions, but for no other token's.
    let ask = write(&second, "c.txt", "1").ask().unwrap();
    let terms = SetTerms { uses: 9, scopes: None, expires: Some(world.later()) };
    world.give(ask, &terms).unwrap();
    second.close().unwrap();
    let third = world.rt.session("a", token).unwrap();
    assert_eq!(write(&third, "c.txt", "2").reason(), None);
    assert!(write(&world.agent(), "c.txt", "3").ask().is_some());
    // It outlives the holder; one that ends with a session does not, nor is one given for it.
    let last = write(&third, "d.txt", "1").ask().unwrap();
    third.close().unwrap();
    assert_eq!(world.set(last, 2), Err(Some(Reason::BadControl)));
    let World { _folder, home, rt } = world;
    rt.close().unwrap();
    let rt = options().open(&home).unwrap();
    let fourth = rt.session("a", token).unwrap();
    assert_eq!(write(&fourth, "c.txt", "4").reason(), None);
    let world = World { _folder, home, rt };
    world.end();
}

#[test]
fn a_wider_set_covers_its_folder_and_no_more() {
    let world = world();
    let agent = world.agent();
    let ask = write(&agent, "notes/a.txt", "1").ask().unwrap();
    let call = world.waiting(ask);
    let proposals = world.rows().proposals(&call).unwrap();
    assert_eq!(proposals.len(), 2);
    assert_eq!(proposals[0].scopes, None);
    assert_eq!(proposals[1].scopes, Some(below(&["notes"], Rights::WRITE)));
    for proposal in &proposals {
        assert_eq!((proposal.asked, proposal.covered), (1, 1));
    }
    let later = Some(world.later());
    let scopes = proposals[1].scopes.clone();
    // It needs an end.
    let endless = SetTerms { uses: 4, scopes: scopes.clone(), expires: None };
    assert_eq!(world.give(ask, &endless), Err(Some(Reason::BadControl)));
    // What is said of another tool, or of more than one, is nothing.
    let read = ToolId::new("fs.read").unwrap();
    let both = scopes.clone().unwrap().with(read.clone(), syscap::format::ToolGrant::new());
    let names = Scope::names(["t1"]).unwrap();
    let names = syscap::format::ToolGrant::new().with("team", names);
    let names = Grants::new().with(ToolId::new("fs.write").unwrap(), names);
    let other = Grants::new().with(read, syscap::format::ToolGrant::new());
    for scopes in [Grants::new(), both, names, other] {
        let terms = SetTerms { uses: 4, scopes: Some(scopes), expires: later };
        assert_eq!(world.give(ask, &terms), Err(Some(Reason::BadControl)));
    }
    world.give(ask, &SetTerms { uses: 4, scopes, expires: later }).unwrap();
    for path in ["notes/a.txt", "notes/b.txt", "notes/deep/c.txt"] {
        assert_eq!(write(&agent, path, "2").reason(), None);
    }
    for path in ["note", "notes2/a.txt", "a.txt"] {
        assert!(write(&agent, path, "2").ask().is_some(), "{path}");
    }
    // What a person would have been asked in vain, or not at all.
    let ask = write(&agent, "notes2/b.txt", "2").ask().unwrap();
    let proposals = world.rows().proposals(&world.waiting(ask)).unwrap();
    let counts: Vec<_> = proposals.iter().map(|one| (one.asked, one.covered)).collect();
    assert_eq!(counts, [(5, 1), (5, 2)]);
    world.end();
}

/// Its record was too large, and the kernel halted.
#[test]
fn approval_with_too_many_rules_is_refused_and_the_home_goes_on() {
    let world = world();
    let agent = world.agent();
    let ask = write(&agent, "a.txt", "1").ask().unwrap();
    let root = || Root::Workspace(AgentId::new("a").unwrap());
    let name = "x".repeat(250);
    let rules = (0..250).map(|n| {
        let path = RootedPath::new(root(), &[format!("{n}{name}").as_str()]).unwrap();
        Rule { path, rights: Rights::ALL }
    });
    let grant = syscap::format::ToolGrant::new().with("path", Scope::paths(rules).unwrap());
    let scopes = Some(Grants::new().with(ToolId::new("fs.write").unwrap(), grant));
    let terms = SetTerms { uses: 2, scopes, expires: Some(world.later()) };
    assert_eq!(world.give(ask, &terms), Err(Some(Reason::BadControl)));
    // It waits still, and the home takes whatever comes.
    assert_eq!(write(&agent, "a.txt", "1").ask(), Some(ask));
    world.rt.freeze(&syscap::format::Freeze::all()).unwrap();
    assert_eq!(write(&agent, "a.txt", "1").reason(), Some(Reason::Frozen));
    world.end();
}

#[test]
fn call_without_undo_or_scope_takes_no_standing_approval() {
    let world = world();
    let agent = world.agent();
    let call = |tool: &str, teams: &str| {
        agent.call(tool, args! { "teams": teams }).unwrap().ask().unwrap()
    };
    // What can't be undone, what runs what it is given, and what touches nothing that has a name.
    let [end, none] = [call("team.end", "t1"), call("team.mail", "")];
    for ask in [end, none, call("team.sh", "t1"), call("team.run", "t1")] {
        assert_eq!(world.waiting(ask).uses_max, 0);
        let terms = SetTerms { uses: 1, scopes: None, expires: Some(world.later()) };
        assert_eq!(world.give(ask, &terms), Err(Some(Reason::BadControl)));
        assert!(world.rows().proposals(&world.waiting(ask)).unwrap().is_empty());
    }
    // As often as the policy says, and at least once.
    let ask = call("team.mail", "t1 t2");
    assert_eq!(world.waiting(ask).uses_max, 3);
    for uses in [0, 4] {
        assert_eq!(world.set(ask, uses), Err(Some(Reason::BadControl)));
    }
    world.set(ask, 3).unwrap();
    // Some of what was shown is covered, more is not, nor is what touches nothing.
    let mailed = |teams: &str| agent.call("team.mail", args! { "teams": teams }).unwrap();
    assert_eq!(mailed("t2").reason(), None);
    for more in ["t1 t3", "", "t3"] {
        assert!(mailed(more).reason() == Some(Reason::Asked), "{more}");
    }
    assert_eq!(mailed("t2 t1").reason(), None);
    let more_than_ever = write(&agent, "a", "1").ask().unwrap();
    assert_eq!(world.set(more_than_ever, 1_001), Err(Some(Reason::BadControl)));
    world.set(more_than_ever, 1_000).unwrap();
    world.end();
}

/// What was approved was asked by that constraint, of a session that had been given no more.
#[test]
fn a_set_answers_what_was_asked() {
    let world = world();
    let agent = world.agent();
    let ask = write(&agent, "a.txt", "1").ask().unwrap();
    world.set(ask, 9).unwrap();
    assert_eq!(write(&agent, "a.txt", "2").reason(), None);
    // Another constraint asks beside it.
    assert!(write(&agent, "a.txt", "drop").ask().is_some());
    assert_eq!(write(&agent, "a.txt", "3").reason(), None);
    // A stranger's word has come in since.
    assert_eq!(agent.call("web.read", args! {}).unwrap().reason(), None);
    let tainted = write(&agent, "a.txt", "4").ask().unwrap();
    let call = world.waiting(tainted);
    assert!(!call.may_widen);
    assert_eq!(world.rows().proposals(&call).unwrap().len(), 1);
    let scopes = Some(below(&["notes"], Rights::WRITE));
    let terms = SetTerms { uses: 2, scopes, expires: Some(world.later()) };
    assert_eq!(world.give(tainted, &terms), Err(Some(Reason::BadControl)));
    // Its own resources may be approved even so: that is what a person sees.
    world.set(tainted, 2).unwrap();
    assert_eq!(write(&agent, "a.txt", "5").reason(), None);
    world.end();
}

/// Of a tool that is not there nobody can say whether a set may be of it.
#[test]
fn no_set_is_of_a_tool_that_is_gone() {
    let World { _folder, home, rt } = world();
    let world = World { _folder, home, rt };
    let agent = world.agent();
    let call = |tool: &str| agent.call(tool, args! { "teams": "t1" }).unwrap().ask().unwrap();
    let asks = [call("team.mail"), call("team.sh")];
    assert_eq!(asks.map(|ask| world.waiting(ask).uses_max), [3, 0]);
    let World { _folder, home, rt } = world;
    drop(agent);
    rt.close().unwrap();
    let rt = Options::new().open(&home).unwrap();
    rt.forget(&["team.mail", "team.sh"].map(|tool| ToolId::new(tool).unwrap())).unwrap();
    let world = World { _folder, home, rt };
    for ask in asks {
        let terms = SetTerms { uses: 2, scopes: None, expires: Some(world.later()) };
        assert_eq!(world.give(ask, &terms), Err(Some(Reason::BadControl)));
        assert!(world.rt.look(|k| k.asks().all(|one| one.uses_max == 0)).unwrap());
    }
    world.end();
}

#[test]
fn a_set_dies_with_its_policy() {
    let world = world();
    let agent = world.agent();
    let ask = write(&agent, "a.txt", "1").ask().unwrap();
    let terms = SetTerms { uses: 9, scopes: None, expires: Some(world.later()) };
    world.give(ask, &terms).unwrap();
    assert_eq!(write(&agent, "a.txt", "1").reason(), None);
    let other = POLICY.replace("Somebody looks at it.", "Somebody really looks at it.");
    world.rt.set_policy(Policy::from_json(other.as_bytes()).unwrap()).unwrap();
    let agent = world.rt.session("a", agent.token()).unwrap();
    assert!(write(&agent, "a.txt", "1").ask().is_some());
    // Nor does it come back with the one that asked.
    world.rt.set_policy(Policy::from_json(POLICY.as_bytes()).unwrap()).unwrap();
    let agent = world.rt.session("a", agent.token()).unwrap();
    assert!(write(&agent, "a.txt", "2").ask().is_some());
    assert_eq!(world.rt.look(|kernel| kernel.sets().count()).unwrap(), 0);
    world.end();
}

/// One that is given after another policy came in force is for the one that asked.
#[test]
fn a_set_is_for_the_policy_that_asked() {
    let world = world();
    let agent = world.agent();
    let ask = write(&agent, "a.txt", "1").ask().unwrap();
    let other = POLICY.replace("Somebody looks at it.", "Somebody really looks at it.");
    world.rt.set_policy(Policy::from_json(other.as_bytes()).unwrap()).unwrap();
    let terms = SetTerms { uses: 9, scopes: None, expires: Some(world.later()) };
    world.give(ask, &terms).unwrap();
    assert!(write(&agent, "a.txt", "1").ask().is_some_and(|anew| anew > ask));
    assert!(write(&agent, "a.txt", "2").ask().is_some());
    world.end();
}

#[test]
fn a_set_dies_with_its_token() {
    let world = world();
    let agent = world.agent();
    let ask = write(&agent, "a.txt", "1").ask().unwrap();
    world.set(ask, 9).unwrap();
    world.rt.revoke(agent.token()).unwrap();
    assert_eq!(write(&agent, "a.txt", "1").reason(), Some(Reason::Revoked));
    assert!(write(&world.agent(), "a.txt", "1").ask().is_some());
    world.end();
}

/// A standing approval goes on under a token that renews its own, over any number of steps: under no
/// other, and not where one who may answer holds it.
#[test]
fn set_goes_on_under_a_renewal_alone() {
    let world = world();
    let agent = world.agent();
    let ask = write(&agent, "a.txt", "1").ask().unwrap();
    world.give(ask, &SetTerms { uses: 3, scopes: None, expires: Some(world.later()) }).unwrap();
    assert_eq!(write(&agent, "a.txt", "1").reason(), None);
    let approver = world.waiting_key();
    let grant =
        |renews: TokenId| Grant::to("a").tools(["fs.write"]).write("workspace").renews(renews);
    let by = |grant: Grant| world.rt.session("a", world.rt.issue(grant).unwrap()).unwrap();
    let next = by(grant(agent.token()));
    let held = by(grant(agent.token()).delegable(1).held_by(approver));
    assert_eq!(write(&held, "a.txt", "2").reason(), Some(Reason::Asked));
    world.rt.revoke(agent.token()).unwrap();
    let last = by(grant(next.token()));
    assert_eq!(write(&next, "a.txt", "2").reason(), None);
    assert!(write(&world.agent(), "a.txt", "3").ask().is_some());
    assert_eq!(write(&last, "a.txt", "3").reason(), None);
    // It was for three.
    assert!(write(&last, "a.txt", "3").ask().is_some());
    world.end();
}

#[test]
fn a_no_ends_a_set() {
    let world = world();
    let agent = world.agent();
    let ask = write(&agent, "a.txt", "1").ask().unwrap();
    world.set(ask, 9).unwrap();
    assert_eq!(write(&agent, "a.txt", "1").reason(), None);
    // It was answered: another yes is none.
    assert_eq!(world.set(ask, 9), Err(Some(Reason::UnknownAsk)));
    world.rt.answer(ask, ApprovalAnswer::Deny, Some("enough")).unwrap();
    assert!(write(&agent, "a.txt", "1").ask().is_some_and(|anew| anew > ask));
    assert!(world.rt.answer(ask, ApprovalAnswer::Deny, None).is_err());
    world.end();
}

/// Who may answer by policy, and how many, where it can't be undone.
#[test]
fn an_elevated_call_waits_for_those_whom_the_policy_names() {
    let (folder, home) = new_home();
    let elevated = |params: &str| {
        let ends = r#""on_fail": "ask", "reason": "It can't be undone.""#;
        let level = r#", "obligations": [{"type": "approval", "level": "elevated"}]"#;
        let text = POLICY.replace(ends, &format!("{ends}{level}"));
        let end = text.rfind('}').unwrap();
        Policy::from_json(format!("{}{params}}}", &text[..end]).as_bytes())
    };
    let rt = options().policy(elevated("").unwrap()).create(&home).unwrap();
    let key = |kernel: &syscap::kernel::Kernel| {
        kernel.roles().set(Role::Approver).unwrap().keys().next().unwrap()
    };
    let key = rt.look(key).unwrap();
    let world = World { _folder: folder, home, rt };
    let agent = world.agent();
    let end = |agent: &Session| agent.call("team.end", args! { "teams": "t1" }).unwrap();
    // Nobody is known to be of that level.
    let asked = end(&agent);
    assert_eq!((asked.reason(), asked.ask()), (Some(Reason::Asked), None));
    let stranger = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    let swap = |params: &str| {
        world.rt.set_policy(elevated(params).unwrap()).unwrap();
        world.rt.session("a", agent.token()).unwrap()
    };
    // One that is no approver counts for nobody; two are more than there are.
    for params in [
        format!(r#", "params": {{"elevated": {{"keys": ["{stranger}"]}}}}"#),
        format!(
            r#", "params": {{"elevated": {{"keys": ["{stranger}", "{key}"], "approvals": 2}}}}"#
        ),
    ] {
        assert_eq!(end(&swap(&params)).ask(), None);
    }
    let only = |means: &str| {
        format!(r#", "params": {{"elevated": {{"keys": ["{key}"], "means": ["{means}"]}}}}"#)
    };
    // By another means it does not count.
    let agent = swap(&only("file"));
    let ask = end(&agent).ask().unwrap();
    assert!(world.rt.answer(ask, ApprovalAnswer::Once, None).is_err());
    let agent = swap(&only("signer"));
    // Those who were asked under another policy are not those of this one.
    let anew = end(&agent).ask().unwrap();
    assert!(anew > ask);
    assert_eq!(world.set(anew, 1), Err(Some(Reason::BadControl)));
    world.rt.answer(anew, ApprovalAnswer::Once, None).unwrap();
    // Nor is what they said: it is asked anew, and this one's word counts again after.
    let other = swap(&only("command"));
    assert!(end(&other).ask().is_some_and(|third| third > anew));
    let agent = swap(&only("signer"));
    let result = end(&agent);
    assert_eq!((result.reason(), result.value().unwrap().as_uint()), (None, Some(1)));
    // A plain yes is none to what needs a level.
    world.rt.set_policy(Policy::from_json(POLICY.as_bytes()).unwrap()).unwrap();
    let agent = world.rt.session("a", agent.token()).unwrap();
    let plain = end(&agent).ask().unwrap();
    world.rt.answer(plain, ApprovalAnswer::Once, None).unwrap();
    let agent = swap(&only("signer"));
    assert!(end(&agent).ask().is_some_and(|level| level > plain));
    for bad in [
        r#"{"keys": []}"#,
        r#"{"keys": ["00"]}"#,
        &format!(r#"{{"keys": ["{key}", "{key}"]}}"#),
        &format!(r#"{{"keys": ["{key}"], "approvals": 0}}"#),
        &format!(r#"{{"keys": ["{key}"], "approvals": 2}}"#),
        &format!(r#"{{"keys": ["{key}"], "means": []}}"#),
        &format!(r#"{{"keys": ["{key}"], "means": ["elicitation"]}}"#),
        &format!(r#"{{"keys": ["{key}"], "who": 1}}"#),
    ] {
        assert!(elevated(&format!(r#", "params": {{"elevated": {bad}}}"#)).is_err(), "{bad}");
    }
    world.end();
}

/// What could not go on even if it were approved is refused for that; and nobody says otherwise.
#[test]
fn call_over_its_budget_cut_is_not_asked() {
    let (folder, home) = new_home();
    let cut = r#"{"type": "budget_cut", "dimension": "disk_write_bytes", "max": 3}"#;
    let text = r#""on_fail": "ask", "reason": "Somebody looks at it."}"#;
    let with = format!("{}, \"obligations\": [{cut}]}}", &text[..text.len() - 1]);
    let policy = Policy::from_json(POLICY.replacen(text, &with, 1).as_bytes()).unwrap();
    let rt = options().policy(policy).create(&home).unwrap();
    let world = World { _folder: folder, home, rt };
    let agent = world.agent();
    assert_eq!(write(&agent, "a.txt", "long").reason(), Some(Reason::Reduced));
    let ask = write(&agent, "a.txt", "123").ask().unwrap();
    world.set(ask, 2).unwrap();
    assert_eq!(write(&agent, "a.txt", "123").reason(), None);
    assert_eq!(write(&agent, "a.txt", "long").reason(), Some(Reason::Reduced));
    world.end();
}

/// Nobody approves what they have not seen: what can't be shown whole does not wait.
#[test]
fn call_that_cannot_be_shown_whole_is_not_asked() {
    let world = world();
    let agent = world.agent();
    let all = |n: usize| (0..n).map(|n| format!("t{n}")).collect::<Vec<_>>().join(" ");
    let call = |teams: &str| agent.call("team.mail", args! { "teams": teams }).unwrap();
    let most = call(&all(64)).ask().unwrap();
    assert_eq!(world.waiting(most).resources.len(), 64);
    let asked = call(&all(65));
    assert_eq!((asked.reason(), asked.ask()), (Some(Reason::Asked), None));
    assert!(matches!(records(&world.home).pop().unwrap().body, Body::Refusal(_)));
    // And none is cut.
    let long = "x".repeat(200);
    let asked = call(&long).ask().unwrap();
    assert_eq!(world.waiting(asked).resources, [format!("team: {long}")]);
    let entry = vault_entry(&mut SqliteReader::open(&world.home).unwrap(), asked, asked).unwrap();
    let record = records(&world.home).pop().unwrap();
    let Body::Ask(ask) = record.body else { panic!() };
    assert_eq!(entry.text(&ask.resources[0]), Some(&*format!("team: {long}")));
    let (tool, manifest) = (ask.call.tool_id.unwrap(), ask.call.manifest.unwrap());
    let args = Commitment::Arguments(ask.call.args_hash.unwrap(), &tool, &manifest);
    assert!(entry.committed(args).is_some());
    world.end();
}
