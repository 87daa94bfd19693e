//! The seven fields that an audit record of an agent must hold (draft-ietf-wimse-aims), as
//! `docs/spec/verification.md` says where they stand: each is there in a log that has all of it.

use std::fs;

use host_support::{end, new_home, records};
use syscap::format::{
    ApprovalAnswer, Body, CallFields, ControlBody as _, Record, RecordKind, Revocation,
};
use syscap::policy::Policy;
use syscap::prelude::*;

const POLICY: &str = r#"{"v": 1, "constraints": [
    {"id": "all", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
     "on_fail": "block", "reason": "Fine."},
    {"id": "writes", "effect": "deny", "subject": {"tool_id": "fs.write"},
     "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "Somebody looks at it."}
]}"#;

/// The fields of a record of a call.
fn call(record: &Record) -> Option<&CallFields> {
    match &record.body {
        Body::Intent(intent) => Some(&intent.call),
        Body::Outcome(outcome) => Some(&outcome.call),
        Body::Refusal(refusal) => Some(&refusal.call),
        Body::Ask(ask) => Some(&ask.call),
        _ => None,
    }
}

#[test]
fn each_of_the_seven_is_there() {
    let (_folder, home) = new_home();
    let policy = Policy::from_json(POLICY.as_bytes()).unwrap();
    let rt = Options::new().policy(policy).create(&home).unwrap();
    let grant = Grant::to("team").tools(["fs.write"]).workspace().delegable(1);
    let root = rt.issue(grant).unwrap();
    let part = rt.attenuate(root, Grant::to("team/a").tools(["fs.write"]).workspace()).unwrap();
    let agent = rt.session("team/a", part).unwrap();
    let write = || agent.call("fs.write", args! { "path": "f", "text": "x" }).unwrap();
    let ask = write().ask().unwrap();
    rt.answer(ask, ApprovalAnswer::Once, Some("as agreed")).unwrap();
    assert_eq!(write().reason(), None);
    rt.control_because("it leaked", |cause| Revocation::subtree(root).because(cause)).unwrap();
    assert_eq!(write().reason(), Some(Reason::Revoked));
    drop(agent);
    end(&rt, &home);
    let log = records(&home);
    let calls: Vec<(&Record, &CallFields)> =
        log.iter().filter_map(|record| Some((record, call(record)?))).collect();
    let kinds: Vec<RecordKind> = calls.iter().map(|(record, _)| record.body.kind()).collect();
    assert_eq!(
        kinds,
        [RecordKind::Ask, RecordKind::Intent, RecordKind::Outcome, RecordKind::Refusal]
    );
    for (record, call) in &calls {
        // 1 the agent, 3 the tool, 5 time and correlation.
        assert_eq!(call.agent_id.as_ref().unwrap().as_str(), "team/a");
        assert_eq!(call.tool_id.as_ref().unwrap().as_str(), "fs.write");
        assert!(call.session.is_some() && call.call_hash.is_some() && call.provenance.is_some());
        assert!(record.time > log[0].time);
        // 2 for whom: the token, and all above it.
        let token = call.capability_token_id.unwrap();
        let issued = |id| {
            log.iter().find_map(|record| match &record.body {
                Body::Issue(issue) if issue.token == id => Some(issue.clone()),
                _ => None,
            })
        };
        let own = issued(token).unwrap();
        assert_eq!(own.parent, Some(root));
        assert_eq!(issued(root).unwrap().parent, None);
        // 6 the state behind the decision.
        assert!(call.policy_hash.is_some() && call.state_snapshot_id.is_some());
    }
    // 3 and 4: what it would have touched, and what was decided, by whom and why.
    let Body::Ask(asked) = &calls[0].0.body else { panic!() };
    assert_eq!((asked.resources.len(), asked.preconditions.len()), (1, 1));
    let decision = asked.call.decision.as_ref().unwrap();
    assert_eq!(decision.deciding.as_ref().unwrap().as_str(), "writes");
    let Body::Intent(intent) = &calls[1].0.body else { panic!() };
    assert!(intent.call.args_hash.is_some() && intent.call.decision.is_some());
    let Body::Approval(event) = &log[usize::try_from(intent.approval.unwrap().get()).unwrap()].body
    else {
        panic!()
    };
    let said = syscap::format::ApprovalBody::from_bytes(&event.control.body).unwrap();
    assert!(said.reason.is_some());
    let Body::Outcome(outcome) = &calls[2].0.body else { panic!() };
    assert_eq!(log[usize::try_from(outcome.intent.get()).unwrap()].body.kind(), RecordKind::Intent);
    // 7 what ended it, and why.
    let revoked = log.iter().find_map(|record| match &record.body {
        Body::Revoke(event) => Revocation::from_bytes(&event.control.body).ok(),
        _ => None,
    });
    assert!(revoked.unwrap().cause.is_some());
    let Body::Refusal(refusal) = &calls[3].0.body else { panic!() };
    assert_eq!(refusal.reason, Reason::Revoked);
}

/// Each field that the document names is one of a shape that stands there.
#[test]
fn the_document_names_fields_that_there_are() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/spec");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let (spec, shapes) = (read("verification.md"), read("log.md") + &read("tokens.md"));
    let table = spec.split_once("## What an audit record must hold").unwrap().1;
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| the ")).collect();
    let more = table.lines().filter(|line| line.starts_with("| time") || line.starts_with("| rev"));
    assert_eq!(rows.len() + more.count(), 7);
    let named = table.split('`').skip(1).step_by(2);
    for name in named {
        let key = format!("| `{name}` |");
        let kind = format!("#### `{name}`");
        assert!(shapes.contains(&key) || shapes.contains(&kind), "{name}");
    }
}
