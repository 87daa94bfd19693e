//! Tools that an agent's client runs itself: asked about before, told of afterwards.

use std::{path::PathBuf, sync::Arc};

use host_support::{new_home, records};
use syscap::audit::SqliteReader;
use syscap::format::{
    Amounts, Body, Canonical, Durability, EffectClass, Enforcement, Extra, Manifest, Outcome,
    Param, ParamType, Profile, Scope, Seq, Status, TxOutcome, json,
};
use syscap::host::{Begun, DOES_DIMENSION, Reported, Settled, ToolUse};
use syscap::kernel::vault_entry;
use syscap::prelude::*;
use syscap::provide::{HostCall, HostRan, Provider, Standing};
use syscap::verify::{Options as VerifyOptions, Soundness as Verified, TrustSource, verify_home};
use syscap::{CallContext, Runtime, Session};

use super::world::Lenient;

/// A home that this process holds and serves, and another place in it that is attached.
pub(super) struct Desk {
    folder: tempfile::TempDir,
    holder: Runtime,
    pub(super) client: Runtime,
    token: TokenId,
}

pub(super) fn manifest(name: &str, effect: EffectClass) -> Manifest {
    let mut manifest = Manifest::new(ToolId::new(name).unwrap(), effect);
    manifest.extra = Extra::Taken;
    manifest.hold = manifest.hold.with(Dimension::EgressBytes, 10);
    manifest
}

impl Desk {
    /// A home where an agent may use `client.run`, and `client.look`, that was never seen.
    pub(super) fn new() -> Self {
        let (folder, home) = new_home();
        let options = Options::new().durability(Durability::Process).policy(Lenient);
        let holder = options.create(&home).unwrap();
        let client = Runtime::connect(&home).unwrap();
        let token = client.issue(Grant::to("a").tools(["echo"])).unwrap();
        let mut desk = Self { folder, holder, client, token };
        // Seen first: then it can be granted.
        assert_eq!(desk.refused(&desk.used("u0", 0)), Reason::NotGranted);
        desk.token = desk.client.issue(Grant::to("a").tools(["client.run"])).unwrap();
        desk
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(super) fn used(&self, id: &str, n: u64) -> ToolUse {
        ToolUse {
            agent: AgentId::new("a").unwrap(),
            conversation: "c".to_owned(),
            id: (!id.is_empty()).then(|| id.to_owned()),
            tool: ToolId::new("client.run").unwrap(),
            args: args! { "n": n }.finish(),
            place: None,
            location: None,
            part: None,
        }
    }

    fn begin(&self, used: &ToolUse) -> Begun {
        let manifest = manifest("client.run", EffectClass::ExternalWrite);
        self.client.begin_use(self.token, used, &manifest).unwrap()
    }

    fn out(&self, used: &ToolUse) -> Seq {
        match self.begin(used) {
            Begun::Out(intent) => intent,
            Begun::Answered(answer) => panic!("{answer:?}"),
        }
    }

    fn refused(&self, used: &ToolUse) -> Reason {
        match self.begin(used) {
            Begun::Answered(answer) => answer.reason().unwrap(),
            Begun::Out(intent) => panic!("out at {intent:?}"),
        }
    }

    fn settle(&self, used: &ToolUse, reported: &Reported) -> ToolResult {
        match self.client.settle_use(self.token, used, reported).unwrap() {
            Settled::Answered(answer) => *answer,
            Settled::Late(record) => panic!("late: record {record}"),
        }
    }

    fn unknown(&self, used: &ToolUse) {
        let before = records(&self.home()).len();
        match self.client.settle_use(self.token, used, &done()) {
            Err(Error::Refused(why)) => assert_eq!(why.reason(), Reason::UnknownReference),
            other => panic!("{other:?}"),
        }
        assert_eq!(records(&self.home()).len(), before);
    }

    /// The server ends in order, and another begins.
    fn restarted(self) -> Self {
        let home = self.home();
        let Self { folder, holder, client, token } = self;
        client.close().unwrap();
        holder.close().unwrap();
        let options = Options::new().durability(Durability::Process).policy(Lenient);
        let holder = options.open(&home).unwrap();
        let client = Runtime::connect(&home).unwrap();
        Self { folder, holder, client, token }
    }

    pub(super) fn outcomes(&self) -> Vec<Outcome> {
        let records = records(&self.home()).into_iter();
        records
            .filter_map(|r| if let Body::Outcome(o) = r.body { Some(*o) } else { None })
            .collect()
    }

    /// Ends it; the log must be sound.
    pub(super) fn close(self) -> Vec<Outcome> {
        let home = self.home();
        let Self { folder, holder, client, .. } = self;
        client.close().unwrap();
        holder.close().unwrap();
        let trust = TrustSource::File(home.join("trust.cbor"));
        let options = VerifyOptions { trust, ..VerifyOptions::default() };
        assert_eq!(verify_home(&home, &options).unwrap().verdict(), Verified::Sound);
        let records = records(&home).into_iter();
        let outcomes =
            records.filter_map(|r| if let Body::Outcome(o) = r.body { Some(*o) } else { None });
        let outcomes = outcomes.collect();
        drop(folder);
        outcomes
    }
}

fn done() -> Reported {
    Reported::Result(Canonical::text("done"))
}

/// What an older hook found of a command decides nothing, and its folder alone is recorded.
#[test]
fn finding_of_an_older_hook_is_ignored() {
    let desk = Desk::new();
    let shell = manifest("client.sh", EffectClass::ExternalWrite)
        .param(Param::required("command", ParamType::Code, "What it runs."))
        .param(Param::optional("place", ParamType::Map, "Where."));
    let place = r#"{"folder": "/project", "own": ["/project"], "search": [], "found": {}, "finding":
        {"effect": "read", "hosts": [], "marks": [], "programs": [], "reads": ["/project"],
         "repositories": [], "writes": []}}"#;
    let used = ToolUse {
        tool: shell.tool.clone(),
        args: args! { "command": "ls" }.finish(),
        place: Some(json::to_data(place.as_bytes()).unwrap()),
        ..desk.used("u1", 0)
    };
    let begin = |token| desk.client.begin_use(token, &used, &shell).unwrap();
    assert!(matches!(begin(desk.token), Begun::Answered(_)), "it is seen, and can be granted");
    let issue = |does: &[&str]| {
        let scope = Scope::names(does.iter().copied()).unwrap();
        let scopes = syscap::format::ToolGrant::new().with(DOES_DIMENSION, scope);
        desk.client.issue(Grant::to("a").tool_with(shell.tool.clone(), scopes))
    };
    for more in [&["network"][..], &["network", "unknown"]] {
        let Err(Error::Refused(why)) = issue(more) else { panic!("{more:?}") };
        assert_eq!(why.reason(), Reason::BadScope);
    }
    let Begun::Out(intent) = begin(issue(&["unknown"]).unwrap()) else {
        panic!("it is let through")
    };
    let all = records(&desk.home());
    let record = all.iter().find(|record| record.seq == intent).unwrap();
    let Body::Intent(body) = &record.body else { panic!("{:?}", record.body) };
    assert_eq!(body.call_effect, EffectClass::ExternalWrite);
    let mut reader = SqliteReader::open(&desk.home()).unwrap();
    let args = vault_entry(&mut reader, intent, intent).unwrap().args.unwrap();
    let args = Canonical::check(args, Profile::DATA).unwrap();
    let told = r#"{"command": "ls", "place": {"folder": "/project"}}"#;
    assert_eq!(args, json::to_data(told.as_bytes()).unwrap());
    desk.close();
}

#[test]
fn a_use_is_out_until_it_is_told_of() {
    let desk = Desk::new();
    let used = desk.used("u1", 1);
    let intent = desk.out(&used);
    let intents = records(&desk.home());
    assert!(matches!(intents[usize::try_from(intent.get()).unwrap()].body, Body::Intent(_)));
    assert_eq!(desk.outcomes().len(), 0);
    assert_eq!(desk.client.view().unwrap().running.len(), 1);
    let answer = desk.settle(&used, &done());
    assert_eq!((answer.text().ok(), answer.tx_outcome()), (Some("done"), TxOutcome::Committed));
    let outcomes = desk.close();
    assert_eq!(outcomes.len(), 1);
    assert_eq!((outcomes[0].intent, outcomes[0].reason), (intent, None));
    assert_eq!(outcomes[0].call.enforcement, Some(Enforcement::Hearsay));
    assert_eq!(outcomes[0].call.used.get(Dimension::EgressBytes), 0);
}

#[test]
fn a_use_that_failed_did_what_is_not_known() {
    let desk = Desk::new();
    let used = desk.used("u1", 1);
    desk.out(&used);
    let failed = Reported::Failed("exit code 1".to_owned());
    let answer = desk.settle(&used, &failed);
    let came = (answer.reason(), answer.tx_outcome());
    assert_eq!(came, (Some(Reason::ToolFailed), TxOutcome::Unknown));
    assert_eq!(answer.output().and_then(|it| it.as_text()), Some("exit code 1"));
    assert_eq!(desk.close()[0].call.used.get(Dimension::EgressBytes), 10);
}

/// What was approved is what must be told of.
#[test]
fn other_arguments_than_were_let_through_are_a_failure() {
    let desk = Desk::new();
    desk.out(&desk.used("u1", 1));
    let answer = desk.settle(&desk.used("u1", 2), &done());
    assert_eq!((answer.reason(), answer.tx_outcome()), (Some(Reason::Failed), TxOutcome::Unknown));
    desk.close();
}

#[test]
fn use_that_is_not_in_flight_is_refused() {
    let desk = Desk::new();
    desk.unknown(&desk.used("u1", 1));
    let used = desk.used("u1", 1);
    desk.out(&used);
    for other in [
        desk.used("u2", 1),
        desk.used("", 1),
        ToolUse { conversation: "d".to_owned(), ..used.clone() },
        ToolUse { agent: AgentId::new("b").unwrap(), ..used.clone() },
        ToolUse { tool: ToolId::new("client.look").unwrap(), ..used.clone() },
    ] {
        desk.unknown(&other);
    }
    desk.client.settle_use(desk.token, &used, &done()).unwrap();
    desk.unknown(&used);
    assert_eq!(desk.close().len(), 1);
}

/// A use that is told of twice is let through once.
#[test]
fn a_repeat_is_not_let_through() {
    let desk = Desk::new();
    let used = desk.used("u1", 1);
    desk.out(&used);
    assert_eq!(desk.refused(&used), Reason::KeyInFlight);
    desk.client.settle_use(desk.token, &used, &done()).unwrap();
    match desk.begin(&used) {
        Begun::Answered(answer) => assert_eq!(answer.text().ok(), Some("done")),
        Begun::Out(intent) => panic!("out at {intent:?}"),
    }
    assert_eq!(desk.refused(&desk.used("u1", 2)), Reason::KeyReused);
    assert_eq!(desk.close().len(), 1);
}

/// Where the client has no names for uses, the oldest of the same call is meant.
#[test]
fn uses_without_names_are_told_apart_by_their_calls() {
    let desk = Desk::new();
    let (one, other) = (desk.used("", 1), desk.used("", 2));
    let intents = [desk.out(&one), desk.out(&other), desk.out(&one)];
    desk.client.settle_use(desk.token, &other, &done()).unwrap();
    desk.client.settle_use(desk.token, &one, &done()).unwrap();
    desk.client.settle_use(desk.token, &one, &done()).unwrap();
    desk.unknown(&one);
    let settled: Vec<Seq> = desk.close().iter().map(|outcome| outcome.intent).collect();
    assert_eq!(settled, [intents[1], intents[0], intents[2]]);
}

/// A use outlives the server that let it through. Its report is recorded as late, by any token of any
/// process, once; what an earlier server has let through is found by its name, or by its call.
#[test]
fn use_whose_server_has_ended_is_reported_late() {
    for by_name in [true, false] {
        let desk = Desk::new();
        let id = if by_name { "u1" } else { "" };
        let (used, other) = (desk.used(id, 1), desk.used("u2", 2));
        let intents = [desk.out(&used), desk.out(&other)];
        let desk = desk.restarted();
        assert_eq!(desk.outcomes().len(), 2);
        let of = |name: &str| AgentId::new(name).unwrap();
        for stranger in [
            ToolUse { agent: of("b"), ..used.clone() },
            ToolUse { tool: ToolId::new("client.look").unwrap(), ..used.clone() },
            desk.used("u3", 1),
        ] {
            desk.unknown(&stranger);
        }
        let late = |used: &ToolUse, reported: &Reported| match desk
            .client
            .settle_use(TokenId::from_bytes([0; 32]), used, reported)
            .unwrap()
        {
            Settled::Late(record) => {
                match &records(&desk.home())[usize::try_from(record.get()).unwrap()].body {
                    Body::LateReport(report) => (report.intent, report.status, report.tx),
                    other => panic!("{other:?}"),
                }
            }
            Settled::Answered(answer) => panic!("{answer:?}"),
        };
        let made = (intents[0], Status::Ok, TxOutcome::Committed);
        assert_eq!(late(&used, &done()), made);
        desk.unknown(&used);
        // That it was not made is what its outcome says already, where it was cancelled so.
        let words = Reported::NotMade("refused".to_owned());
        let not_made = desk.client.settle_use(desk.token, &other, &words);
        assert!(matches!(not_made, Err(Error::Refused(_))), "{not_made:?}");
        // It was let through with another argument.
        let changed = (intents[1], Status::Error, TxOutcome::Unknown);
        assert_eq!(late(&desk.used("u2", 3), &done()), changed);
        desk.unknown(&other);
        let charged = desk.close().into_iter().map(|o| o.call.used.get(Dimension::EgressBytes));
        assert_eq!(charged.collect::<Vec<_>>(), [10, 10]);
    }
}

/// The client has gone: the run is given up after its limit, and charged in full.
#[test]
fn a_use_that_is_never_told_of_is_given_up() {
    let desk = Desk::new();
    let used = ToolUse { tool: ToolId::new("client.brief").unwrap(), ..desk.used("u1", 1) };
    let mut brief = manifest("client.brief", EffectClass::ExternalWrite);
    brief.wall_ms_max = Some(50);
    desk.client.begin_use(desk.token, &used, &brief).unwrap();
    let token = desk.client.issue(Grant::to("a").tools(["client.brief"])).unwrap();
    let used = ToolUse { id: Some("u2".to_owned()), ..used };
    let begun = desk.client.begin_use(token, &used, &brief).unwrap();
    assert!(matches!(begun, Begun::Out(_)), "{begun:?}");
    while desk.outcomes().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    // In the moment when it is given up it can still be told of, which changes nothing.
    match desk.client.settle_use(token, &used, &done()) {
        Ok(Settled::Answered(answer)) => assert_eq!(answer.reason(), Some(Reason::TimedOut)),
        Ok(Settled::Late(_)) => {}
        other => panic!("{other:?}"),
    }
    let outcomes = desk.close();
    assert_eq!((outcomes[0].reason, outcomes[0].tx), (Some(Reason::TimedOut), TxOutcome::Unknown));
    assert_eq!(outcomes[0].call.used.get(Dimension::EgressBytes), 10);
}

/// Who asked is not who tells, and neither need still be there.
#[test]
fn a_use_outlives_the_process_that_asked() {
    let mut desk = Desk::new();
    let used = desk.used("u1", 1);
    desk.out(&used);
    let another = Runtime::connect(desk.home()).unwrap();
    std::mem::replace(&mut desk.client, another).close().unwrap();
    desk.client.settle_use(desk.token, &used, &done()).unwrap();
    assert_eq!(desk.close()[0].reason, None);
}

#[test]
fn a_home_that_closes_gives_up_what_is_out() {
    let desk = Desk::new();
    desk.out(&desk.used("u1", 1));
    desk.out(&desk.used("u2", 1));
    let outcomes = desk.close();
    assert_eq!(outcomes.len(), 2);
    for outcome in outcomes {
        assert_eq!((outcome.reason, outcome.tx), (Some(Reason::Cancelled), TxOutcome::Unknown));
        assert_eq!(outcome.call.used.get(Dimension::EgressBytes), 10);
    }
}

/// What a read may have used is not known either.
#[test]
fn a_read_that_is_given_up_is_charged_in_full() {
    let desk = Desk::new();
    let look = manifest("client.look", EffectClass::ExternalRead);
    let used = ToolUse { tool: look.tool.clone(), ..desk.used("u1", 1) };
    desk.client.begin_use(desk.token, &used, &look).unwrap();
    let token = desk.client.issue(Grant::to("a").tools(["client.look"])).unwrap();
    let used = ToolUse { id: Some("u2".to_owned()), ..used };
    let begun = desk.client.begin_use(token, &used, &look).unwrap();
    assert!(matches!(begun, Begun::Out(_)), "{begun:?}");
    let outcomes = desk.close();
    assert_eq!((outcomes[0].reason, outcomes[0].tx), (Some(Reason::Cancelled), TxOutcome::NoOp));
    assert_eq!(outcomes[0].call.used.get(Dimension::EgressBytes), 10);
}

#[test]
fn a_tool_that_is_another_is_not_let_through() {
    let desk = Desk::new();
    // Of another class than on record.
    let used = desk.used("u1", 1);
    let other = manifest("client.run", EffectClass::Read);
    match desk.client.begin_use(desk.token, &used, &other).unwrap() {
        Begun::Answered(answer) => assert_eq!(answer.reason(), Some(Reason::ToolChanged)),
        Begun::Out(intent) => panic!("out at {intent:?}"),
    }
    // One that the holder runs itself.
    let used = ToolUse { tool: ToolId::new("echo").unwrap(), ..desk.used("u2", 1) };
    let begun = desk.client.begin_use(desk.token, &used, &manifest("echo", EffectClass::Read));
    assert!(matches!(begun, Err(Error::BadName { .. })), "{begun:?}");
    // Two names.
    let begun =
        desk.client.begin_use(desk.token, &desk.used("u3", 1), &manifest("x.y", EffectClass::Read));
    assert!(matches!(begun, Err(Error::Refused(_))), "{begun:?}");
    assert_eq!(desk.close().len(), 0);
}

#[test]
fn names_of_a_client_are_bounded() {
    let desk = Desk::new();
    let long = "x".repeat(257);
    for used in [
        ToolUse { conversation: String::new(), ..desk.used("u", 1) },
        ToolUse { conversation: long.clone(), ..desk.used("u", 1) },
        ToolUse { id: Some(long), ..desk.used("u", 1) },
        ToolUse { id: Some(String::new()), ..desk.used("u", 1) },
    ] {
        let begun = desk.client.begin_use(
            desk.token,
            &used,
            &manifest("client.run", EffectClass::ExternalWrite),
        );
        assert!(matches!(begun, Err(Error::Refused(_))), "{begun:?}");
    }
    // Tools that are not put on record, since they can't be: no room is lost by them.
    for n in 0..100 {
        let used =
            ToolUse { tool: ToolId::new(&format!("client.bad{n}")).unwrap(), ..desk.used("u", 1) };
        let mut bad = manifest(used.tool.as_str(), EffectClass::ExternalWrite);
        bad.dimensions.push(Box::from("path"));
        let begun = desk.client.begin_use(desk.token, &used, &bad);
        assert!(matches!(begun, Err(Error::BadName { .. })), "{begun:?}");
    }
    // Tools that come on record, one of them already.
    let begin = |n: u64| {
        let name = format!("client.t{n}");
        let used = ToolUse { tool: ToolId::new(&name).unwrap(), ..desk.used("u", n) };
        desk.client.begin_use(desk.token, &used, &manifest(&name, EffectClass::ExternalWrite))
    };
    (1..64).for_each(|n| assert!(matches!(begin(n), Ok(Begun::Answered(_))), "{n}"));
    assert!(matches!(begin(64), Err(Error::Holder(_))));
    assert!(matches!(begin(63), Ok(Begun::Answered(_))));
    // Only what is on record counts.
    desk.client.forget(&[ToolId::new("client.t7").unwrap()]).unwrap();
    assert!(matches!(begin(64), Ok(Begun::Answered(_))));
    begin(65).unwrap_err();
    // Conversations: the one that was silent longest is forgotten.
    for n in 0..100 {
        let used = ToolUse { conversation: n.to_string(), ..desk.used("", n) };
        desk.out(&used);
        desk.client.settle_use(desk.token, &used, &done()).unwrap();
    }
    assert!(desk.client.view().unwrap().sessions.len() <= 65);
    desk.close();
}

/// What the client sends is not the kernel's to resolve: it runs what was judged.
#[test]
fn reference_like_arguments_are_data() {
    let desk = Desk::new();
    let reference = args! { "record": 1_u64, "path": Canonical::list([].into_iter()) };
    for args in [args! { "$ref": reference }, args! { "$lit": 1_u64 }, args! { "$lit": args! {} }] {
        let used = ToolUse { args: args.finish(), ..desk.used("", 0) };
        desk.out(&used);
        assert_eq!(desk.settle(&used, &done()).reason(), None);
    }
    desk.close();
}

/// Who was not given the token that a use was begun with can't tell of it.
#[test]
fn a_use_is_told_of_with_its_token() {
    let desk = Desk::new();
    let used = desk.used("u1", 1);
    desk.out(&used);
    let other = desk.client.issue(Grant::to("a").tools(["client.run"])).unwrap();
    let stranger = Runtime::connect(desk.home()).unwrap();
    for token in [other, TokenId::from_bytes([0; 32])] {
        match stranger.settle_use(token, &used, &done()) {
            Err(Error::Refused(why)) => assert_eq!(why.reason(), Reason::UnknownReference),
            other => panic!("{other:?}"),
        }
    }
    stranger.close().unwrap();
    assert_eq!(desk.outcomes().len(), 0);
    desk.client.settle_use(desk.token, &used, &done()).unwrap();
    assert_eq!(desk.close().len(), 1);
}

/// Runs a tool under the same name as an agent's client.
struct Real;

impl Provider for Real {
    fn run(&self, _: HostCall) -> HostRan {
        let result = Ok(Canonical::text("real"));
        HostRan::new(result, TxOutcome::Committed, Amounts::ZERO)
    }
}

/// What somebody used so does not draw the calls of others to the desk.
#[test]
fn the_desk_runs_no_calls_but_its_own() {
    let desk = Desk::new();
    let args = args! { "n": 1_u64 };
    let callers = [&desk.holder, &desk.client].map(|access| access.session("a", desk.token));
    let callers = callers.map(Result::unwrap);
    let call = |caller: &Session| {
        let call = caller.request("client.run").args(args.clone());
        call.context(CallContext::tag(1)).wait().unwrap()
    };
    desk.out(&desk.used("u1", 1));
    for caller in &callers {
        assert_eq!(call(caller).reason(), Some(Reason::NoProvider));
    }
    let provider = Runtime::connect(desk.home()).unwrap();
    let tool = manifest("client.run", EffectClass::ExternalWrite);
    let offers = provider.provide(vec![tool], Arc::new(Real)).unwrap();
    assert_eq!(offers[0].standing, Standing::Ready);
    // The desk's offer is the newest again.
    desk.out(&desk.used("u2", 1));
    for caller in &callers {
        assert_eq!(call(caller).text().ok(), Some("real"));
    }
    assert_eq!(desk.client.view().unwrap().running.len(), 2);
    for id in ["u1", "u2"] {
        desk.client.settle_use(desk.token, &desk.used(id, 1), &done()).unwrap();
    }
    provider.close().unwrap();
    callers.into_iter().for_each(|caller| caller.close().unwrap());
    assert_eq!(desk.close().len(), 4);
}

/// To the kernel an optional argument that is null is not there: the use is the same.
#[test]
fn an_argument_that_is_null_keeps_no_use_from_being_made() {
    let mut desk = Desk::new();
    let mut manifest = manifest("client.opt", EffectClass::Read);
    manifest = manifest.param(Param::optional("at", ParamType::Text, ""));
    let tool = manifest.tool.clone();
    let args = args! { "n": 1, "at": () }.finish();
    let used = ToolUse { tool, args, ..desk.used("o1", 1) };
    drop(desk.client.begin_use(desk.token, &used, &manifest).unwrap());
    desk.token = desk.client.issue(Grant::to("a").tools(["client.opt"])).unwrap();
    let used = ToolUse { id: Some("o2".to_owned()), ..used };
    match desk.client.begin_use(desk.token, &used, &manifest).unwrap() {
        Begun::Out(_) => {}
        Begun::Answered(answer) => panic!("{answer:?}"),
    }
    let answer = desk.settle(&used, &done());
    assert_eq!(answer.reason(), None);
    desk.close();
}
