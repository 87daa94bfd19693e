//! What a caller sent stands in no record.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use syscap::{audit::memory::MemoryStore, kernel::record::Durability, prelude::*};

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
        agent.send_json(line.as_bytes()).unwrap();
    }
    rt.close().unwrap();
    let found = |bytes: &[u8]| bytes.windows(marker.len()).any(|w| w == marker.as_bytes());
    let records = memory.all_records();
    assert!(records.len() > 15);
    assert!(!records.iter().any(|record| found(record)));
    assert!(!memory.all_objects().iter().any(|object| found(&object.bytes)));
}
