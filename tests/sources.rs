//! Who brought a call about: the host's word, whatever its caller says of it.

use std::path::Path;

use host_support::new_home;
use syscap::audit::SqliteReader;
use syscap::format::{
    Body, Decision, EngineIdentity, Provenance, Record, Seq, Source, Verdict as PolicyVerdict,
};
use syscap::kernel::{Next, PolicyEngine, Question};
use syscap::prelude::*;
use syscap::verify::{Options as VerifyOptions, Soundness, verify_home};
use syscap::{Runtime, Written};

/// A policy that lets through what a person brought about, and nothing else.
struct UsersOnly;

impl PolicyEngine for UsersOnly {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("users-only"), version: 1 }
    }
    fn document(&self) -> Vec<u8> {
        vec![0xa0]
    }
    fn decide(&self, question: &Question<'_>) -> Decision {
        Decision::plain(match question.source {
            Source::User => PolicyVerdict::Allow,
            _ => PolicyVerdict::Deny,
        })
    }
}

/// An echo whose envelope says where it comes from.
fn saying(provenance: &str) -> String {
    format!(r#"{{"tool_id":"echo","args":{{"value":1}},"provenance":{provenance}}}"#)
}

/// What the log says of where calls came from: refusals and outcomes, in order.
fn on_record(home: &Path) -> Vec<Provenance> {
    let mut found = Vec::new();
    let mut each = |_: Seq, bytes: &[u8]| {
        found.extend(match Record::decode(bytes).unwrap().body {
            Body::Outcome(outcome) => outcome.call.provenance,
            Body::Refusal(refusal) => refusal.call.provenance,
            _ => None,
        });
        Next::More
    };
    SqliteReader::open(home).unwrap().records(Seq::GENESIS, &mut each).unwrap();
    found
}

#[test]
fn a_callers_word_for_its_source_is_a_claim() {
    let (_folder, home) = new_home();
    let rt = Options::new().policy(UsersOnly).create(&home).unwrap();
    let token = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
    let agent = rt.session("a", token).unwrap();
    let user = agent.by(Source::User);
    assert_eq!((agent.source(), user.source()), (Source::Agent, Source::User));
    let (as_user, as_agent) = (r#"{"source":"user","trace":"t"}"#, r#"{"source":"agent"}"#);
    let cases = [
        (&agent, as_user, Some(Reason::Denied), (Source::Agent, Some(Source::User))),
        (&agent, as_agent, Some(Reason::Denied), (Source::Agent, Some(Source::Agent))),
        (&user, as_user, None, (Source::User, Some(Source::User))),
        (&user, as_agent, None, (Source::User, Some(Source::Agent))),
    ];
    for (session, provenance, reason, expected) in &cases {
        let result = session.envelope(saying(provenance).as_bytes(), Written::Json).wait().unwrap();
        assert_eq!(result.reason(), *reason, "{provenance}");
        let from = result.provenance().unwrap();
        assert_eq!((from.source, from.claimed), *expected, "{provenance}");
        let shown = result.to_canonical();
        let shown = |key| shown.item().get("provenance").unwrap().get(key).map(|v| v.as_text());
        assert_eq!(shown("source"), Some(Some(expected.0.name())));
        assert_eq!(shown("claimed"), expected.1.map(|claimed| Some(claimed.name())));
    }
    // One call of a session can be by another than the rest are.
    let call = agent.envelope(saying(as_agent).as_bytes(), Written::Json).from(Source::User);
    let from = call.wait().unwrap();
    assert_eq!(from.reason(), None);
    assert_eq!(from.provenance().map(|from| from.source), Some(Source::User));
    // What says nothing is by whom the host says.
    assert_eq!(
        agent.call("echo", args! { "value": 1_u64 }).unwrap().reason(),
        Some(Reason::Denied)
    );
    assert_eq!(user.call("echo", args! { "value": 1_u64 }).unwrap().reason(), None);
    // So is a proposal.
    user.propose(args! { "goal.aim": "x" }).unwrap();
    // A source that there is not is no source.
    let result =
        user.envelope(saying(r#"{"source":"root"}"#).as_bytes(), Written::Json).wait().unwrap();
    assert_eq!(result.reason(), Some(Reason::BadField));
    let recorded: Vec<_> = on_record(&home).iter().map(|p| (p.source, p.claimed)).collect();
    let expected: Vec<_> = cases.iter().map(|(_, _, _, expected)| *expected).collect();
    assert_eq!(recorded[..4], expected);
    // What can't be read takes nothing from the host's word.
    let user = (Source::User, None);
    let one = (Source::User, Some(Source::Agent));
    assert_eq!(recorded[4..], [one, (Source::Agent, None), user, user]);
    rt.close().unwrap();
    // The same question is put together again from the log.
    let inspected = Options::new().policy(UsersOnly).inspect(&home).unwrap();
    let tally = inspected.replay(&UsersOnly).unwrap();
    assert_eq!((tally.same, tally.changed.len(), tally.not_asked.len()), (7, 0, 0));
    let report = verify_home(&home, &VerifyOptions::default()).unwrap();
    assert_eq!(report.verdict(), Soundness::Sound, "{report:?}");
}

/// Nor does an attached process speak for anybody but an agent.
#[test]
fn an_attached_process_calls_as_an_agent() {
    let (_folder, home) = new_home();
    let rt = Options::new().policy(UsersOnly).create(&home).unwrap();
    let token = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
    let holder = rt;
    let attached = Runtime::connect(&home).unwrap();
    assert!(!attached.is_holder());
    for access in [&holder, &attached] {
        let caller = access.session("a", token).unwrap();
        let envelope = saying(r#"{"source":"user"}"#);
        let answer = caller.envelope(envelope.as_bytes(), Written::Json).wait().unwrap();
        assert_eq!(answer.reason(), Some(Reason::Denied));
    }
    attached.close().unwrap();
    holder.close().unwrap();
    let recorded: Vec<_> = on_record(&home).iter().map(|p| (p.source, p.claimed)).collect();
    assert_eq!(recorded, [(Source::Agent, Some(Source::User)); 2]);
}
