//! The third seed's envelopes: what it says that a call has goes in, what it says that a result has
//! comes out, and what it says that a record has is on record, for each of its tools.

use serde_json::{Value, json};

use crate::support::{TestHome, is_hash, run};

/// A tool of the seed, its arguments by the seed's names, and what its token needs.
const CALLS: [(&str, &str); 4] = [
    ("fs.write", r#"{"path": "a.txt", "bytes": {"$bytes": "aGk="}}"#),
    ("fs.read", r#"{"path": "a.txt"}"#),
    ("vecdb.query", r#"{"embedding": [1, 0], "filters": {}, "collection": "t/docs"}"#),
    ("email.draft", r#"{"to": "ann@example.com", "subject": "s", "body": "b"}"#),
];
const CALL: [&str; 7] = [
    "tool_id",
    "args",
    "agent_id",
    "capability_token_id",
    "state_snapshot_id",
    "policy_hash",
    "provenance",
];
const RESULT: [&str; 6] =
    ["tool_id", "agent_id", "state_snapshot_id", "status", "result_hash", "provenance"];
const RECORD: [&str; 8] = [
    "agent_id",
    "policy_hash",
    "state_snapshot_id",
    "capability_token_id",
    "tool_id",
    "args_hash",
    "result_hash",
    "provenance",
];

#[test]
fn each_tool_takes_and_gives_the_seeds_envelope() {
    let home = TestHome::new();
    let names: Vec<&str> = CALLS.iter().map(|(tool, _)| *tool).collect();
    let (names, path) = (format!("echo,vecdb.upsert,{}", names.join(",")), home.path());
    let token = home.token(
        "a",
        &[
            "--tool",
            &names,
            "--read",
            "workspace",
            "--write",
            "workspace",
            "--scope",
            "collection=t/docs",
            "--scope",
            "recipient=ann@example.com",
        ],
    );
    let stored = br#"{"tool_id": "vecdb.upsert", "args": {"collection": "t/docs", "items":
        [{"id": "x", "embedding": [1, 0]}]}}"#;
    let stored: Vec<u8> = stored.iter().copied().filter(|byte| *byte != b'\n').collect();
    let first = home.call("a", &token, &stored);
    assert_eq!(first[0]["status"], "ok", "{}", first[0]);
    let policy = run(["policy", "hash", &path]).fine().out;
    for (tool, args) in CALLS {
        let args: Value = serde_json::from_str(args).unwrap();
        let envelope = json!({
            "tool_id": tool,
            "args": args,
            "agent_id": "a",
            "capability_token_id": token,
            "state_snapshot_id": first[0]["state_snapshot_id"],
            "policy_hash": policy.trim_end(),
            "provenance": {"source": "user"},
        });
        assert!(CALL.iter().all(|key| !envelope[key].is_null()), "{envelope}");
        let result = home.call("a", &token, envelope.to_string().as_bytes()).remove(0);
        assert_eq!(
            (&result["status"], &result["tool_id"]),
            (&json!("ok"), &json!(tool)),
            "{result}"
        );
        assert!(RESULT.iter().all(|key| !result[key].is_null()), "{result}");
        assert!(is_hash(&result["result_hash"]), "{result}");
        let records = home.log();
        let outcome = records.iter().rfind(|record| record["kind"] == "outcome").unwrap();
        assert!(RECORD.iter().all(|key| !outcome[key].is_null()), "{outcome}");
        assert_eq!(outcome["tool_id"], tool);
        for key in ["agent_id", "state_snapshot_id", "result_hash"] {
            assert_eq!(outcome[key], result[key], "{key}");
        }
        assert_eq!(outcome["capability_token_id"], json!(token));
        assert_eq!(outcome["policy_hash"], policy.trim_end());
        // Any of them that is there must be right.
        for (key, value) in [
            ("agent_id", json!("b")),
            ("capability_token_id", json!("0".repeat(64))),
            ("state_snapshot_id", json!("0".repeat(64))),
            ("policy_hash", json!("0".repeat(64))),
            ("tool_id", json!("fs.fly")),
        ] {
            let mut wrong = envelope.clone();
            wrong[key] = value;
            let refused = home.call("a", &token, wrong.to_string().as_bytes()).remove(0);
            assert_eq!(refused["error"]["kind"], "refused", "{key} {refused}");
        }
    }
}
