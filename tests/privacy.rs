//! What a caller sent stands in no record.

use std::collections::BTreeSet;

use syscap::Written;
use syscap::audit::MemoryStore;
use syscap::format::{Body, CallFields, Durability, Record};
use syscap::prelude::*;

/// Markers in every place that a caller can fill: none of them is in the log or the documents.
#[test]
fn no_record_holds_what_a_caller_sent() {
    let dir = tempfile::tempdir().unwrap();
    let memory = MemoryStore::new();
    let options = Options::new().store(memory.share()).durability(Durability::Memory);
    let rt = options.create(dir.path().join("home")).unwrap();
    let tools = ["fs.read", "fs.write", "echo"];
    let token = rt.issue(Grant::to("a").tools(tools).workspace()).unwrap();
    let agent = rt.session("a", token).unwrap();
    let marker = "m4rk3rmarker";
    for line in [
        format!(r#"{{"tool_id": "echo", "args": {{"value": "{marker}"}}}}"#),
        format!(r#"{{"tool_id": "echo", "args": {{"value": 1}}, "{marker}": "{marker}"}}"#),
        format!(r#"{{"tool_id": "echo", "args": {{"{marker}": 1}}}}"#),
        format!(r#"{{"tool_id": "{marker}", "args": {{}}}}"#),
        format!(r#"{{"tool_id": "echo", "args": {{"value": 1}}, "agent_id": "{marker}"}}"#),
        format!(r#"{{"tool_id": "fs.write", "args": {{"path": "{marker}", "text": "x"}}}}"#),
        format!(r#"{{"tool_id": "fs.read", "args": {{"path": "../../{marker}"}}}}"#),
        format!(r#"{{"tool_id": "fs.read", "args": {{"path": "{marker}/none"}}}}"#),
        marker.to_owned(),
    ] {
        agent.envelope(line.as_bytes(), Written::Json).wait().unwrap();
    }
    rt.close().unwrap();
    let found = |bytes: &[u8]| bytes.windows(marker.len()).any(|w| w == marker.as_bytes());
    let records = memory.all_records();
    assert!(records.len() > 15);
    assert!(!records.iter().any(|record| found(record)));
    assert!(!memory.all_objects().iter().any(|object| found(&object.bytes)));
}

/// The same call made again and again, let through, failing and refused: whoever has the log, and
/// guesses what was sent, can't hold the guess against it, nor see that two calls were the same.
#[test]
fn equal_calls_have_nothing_in_common_on_record() {
    let dir = tempfile::tempdir().unwrap();
    let memory = MemoryStore::new();
    let options = Options::new().store(memory.share()).durability(Durability::Memory);
    let rt = options.create(dir.path().join("home")).unwrap();
    let token = rt.issue(Grant::to("a").tools(["fs.read", "fs.write"]).workspace()).unwrap();
    let agent = rt.session("a", token).unwrap();
    let times = 4;
    for _ in 0..times {
        agent.call("fs.write", args! { "path": "a", "text": "x" }).unwrap().value().unwrap();
        agent.call("fs.read", args! { "path": "a" }).unwrap().value().unwrap();
        assert!(agent.call("fs.read", args! { "path": "none" }).unwrap().reason().is_some());
        assert!(agent.call("fs.read", args! { "path": "../../b/x" }).unwrap().reason().is_some());
    }
    rt.close().unwrap();
    let (mut all, mut seen) = (0, BTreeSet::new());
    for bytes in memory.all_records() {
        let (call, is_intent): (CallFields, bool) = match Record::decode(&bytes).unwrap().body {
            Body::Intent(intent) => (intent.call, true),
            Body::Outcome(outcome) => (outcome.call, false),
            Body::Refusal(refusal) => (refusal.call, true),
            _ => continue,
        };
        // An outcome says again what its intent says, and adds the result.
        let of_intent = [
            call.call_hash.map(|hash| *hash.as_bytes()),
            call.args_hash.map(|hash| *hash.as_bytes()),
        ];
        let digests = of_intent.into_iter().flatten().filter(|_| is_intent);
        for digest in digests.chain(call.result_hash.map(|hash| *hash.as_bytes())) {
            all += 1;
            seen.insert(digest);
        }
    }
    assert!(all >= times * 11, "{all} commitments");
    assert_eq!(seen.len(), all, "each commitment stands once");
}
