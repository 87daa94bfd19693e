//! The third seed's envelopes: what it says that a call has goes in, what it says that a result has
//! comes out, and what it says that a record has is on record, for each of its tools.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
};

use serde_json::{Value, json};

use crate::support::{TestHome, is_hash, run};

/// A tool of the seed, its arguments by the seed's names, and what its token needs.
const CALLS: [(&str, &str); 5] = [
    ("fs.write", r#"{"path": "a.txt", "bytes": {"$bytes": "aGk="}}"#),
    ("fs.read", r#"{"path": "a.txt"}"#),
    ("vecdb.query", r#"{"embedding": [1, 0], "filters": {}, "collection": "t/docs"}"#),
    ("email.draft", r#"{"to": "ann@example.com", "subject": "s", "body": "b"}"#),
    ("net.egress", r#"{"route": "desk", "purpose": "support", "payload_ref": "hello"}"#),
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

/// A server that takes whatever comes; gives its port.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut seen = Vec::new();
            let mut part = [0; 1_024];
            while !seen.ends_with(b"hello") {
                match stream.read(&mut part) {
                    Ok(count) if count > 0 => seen.extend_from_slice(&part[..count]),
                    _ => break,
                }
            }
            let answer = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            drop(stream.write_all(answer));
        }
    });
    port
}

/// A home with a route out, and a policy that lets it be taken.
fn home() -> TestHome {
    let home = TestHome::new();
    let path = home.path();
    let mut policy: Value =
        serde_json::from_str(&run(["policy", "show", &path]).fine().out).unwrap();
    policy["params"]["auto_approve"] = json!(["net.egress"]);
    let file = home.file("policy.json", &policy.to_string());
    assert_eq!(run(["policy", "set", &path, &file]).code, 0);
    let url = format!("http://127.0.0.1:{}/in", server());
    let routes = json!({"routes": {"desk": {"url": url, "addresses": ["127.0.0.1/32"]}}});
    let file = home.file("routes.json", &routes.to_string());
    assert_eq!(run(["http", "set", &path, "net.egress", &file]).code, 0);
    home
}

#[test]
fn each_tool_takes_and_gives_the_seeds_envelope() {
    let home = home();
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
            "--scope",
            "route=desk",
            "--scope",
            "purpose=support",
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
