//! `call`.

use std::fs;

use serde_json::{Value, json};

use crate::cli::support::{ECHO, TestHome, is_hash, reason, run};

#[test]
fn calls_have_effects_and_receipts() {
    let home = TestHome::new();
    let id = home.worker("a");
    let input = r#"{"tool_id":"fs.write","args":{"path":"d/x.txt","text":"h\u00e9","parents":true}}

{"tool_id":"fs.read","args":{"path":"d/x.txt"}}
   	
{"tool_id":"fs.list","args":{}}
{"tool_id":"fs.write","args":{"path":"b","bytes":{"$bytes":"AP8="}}}
{"tool_id":"fs.read","args":{"path":"b"}}"#;
    let results = home.call("a", &id, input.replace('\n', "\r\n").as_bytes());
    assert_eq!(results.len(), 5);
    assert!(results.iter().all(|result| result["status"] == "ok"), "{results:?}");
    assert_eq!(fs::read_to_string(home.workspace("a").join("d/x.txt")).unwrap(), "h\u{e9}");
    assert_eq!(fs::read(home.workspace("a").join("b")).unwrap(), [0, 255]);
    assert_eq!(results[1]["result"]["text"], "h\u{e9}");
    assert_eq!(results[4]["result"]["bytes"], json!({"$bytes": "AP8="}));
    let log = home.log();
    for result in &results {
        for hash in ["result_hash", "state_snapshot_id"] {
            assert!(is_hash(&result[hash]));
        }
        let receipt = &result["receipt"];
        assert_eq!(receipt["log"], log[0]["leaf"]);
        for (seq, leaf) in [("intent_seq", "intent_leaf"), ("outcome_seq", "outcome_leaf")] {
            let record = &log[usize::try_from(receipt[seq].as_u64().unwrap()).unwrap()];
            assert_eq!(record["leaf"], receipt[leaf]);
        }
    }
    assert_eq!(home.verify(), 0);
}

/// The envelope of a result stands in the call as it was printed: ids are hexadecimal.
#[test]
fn whole_envelopes_are_taken() {
    let home = TestHome::new();
    let id = home.worker("a");
    let first = home.call("a", &id, ECHO.as_bytes()).remove(0);
    let intent = home.log().into_iter().find(|record| record["kind"] == "intent").unwrap();
    let envelope = json!({
        "v": 1,
        "tool_id": "echo",
        "args": {"value": [1, -1, 1.5, "x", null, true]},
        "agent_id": "a",
        "capability_token_id": id,
        "state_snapshot_id": first["state_snapshot_id"],
        "policy_hash": intent["policy_hash"],
        "provenance": {"source": "user", "time": 5, "inputs": [1], "trace": "t-1"},
        "idempotency_key": "k-1",
        "something_else": {"kept": true},
    });
    let change = |key: &str, value: Value| {
        let mut changed = envelope.clone();
        changed[key] = value;
        // A key that was used is looked up before policy and snapshot are.
        if !["args", "agent_id", "capability_token_id"].contains(&key) {
            changed["idempotency_key"] = json!(key);
        }
        changed
    };
    let lines = [
        envelope.clone(),
        envelope.clone(),
        change("args", json!({"value": 2})),
        change("agent_id", json!("b")),
        change("capability_token_id", json!("0".repeat(64))),
        change("policy_hash", json!("0".repeat(64))),
        change("state_snapshot_id", json!("0".repeat(64))),
        change("v", json!(2)),
        change("proof", json!("x")),
        change("provenance", json!({"source": "nobody"})),
    ];
    let input: Vec<String> = lines.iter().map(Value::to_string).collect();
    let results = home.call("a", &id, input.join("\n").as_bytes());
    assert_eq!(results[0]["result"]["value"], envelope["args"]["value"]);
    assert_eq!(results[0]["provenance"]["trace"], "t-1");
    assert_eq!(results[0]["result"], results[1]["result"]);
    let reasons: Vec<&str> = results[2..].iter().map(reason).collect();
    let expected = [
        "key_reused",
        "not_bound",
        "not_bound",
        "policy_mismatch",
        "unknown_snapshot",
        "unknown_version",
        "bad_proof",
        "bad_field",
    ];
    assert_eq!(reasons, expected);
    let kinds: Vec<_> = home.log().into_iter().map(|record| record["kind"].clone()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "repeat").count(), 1);
    assert_eq!(home.verify(), 0);
}

#[test]
fn malformed_call_is_refused_and_the_next_is_answered() {
    let home = TestHome::new();
    let id = home.worker("a");
    let cases: [(&[u8], &str); 12] = [
        (b"{", "malformed"),
        (b"nonsense", "malformed"),
        (b"\xff\xfe{}", "malformed"),
        (b"{\"tool_id\":\"\xff\",\"args\":{}}", "malformed"),
        (b"\xef\xbb\xbf{\"tool_id\":\"echo\",\"args\":{\"value\":1}}", "malformed"),
        (br#"{"tool_id":"echo","args":{"value":1}} {}"#, "malformed"),
        (br#"{"tool_id":"echo","tool_id":"echo","args":{"value":1}}"#, "duplicate_key"),
        (br#"{"tool_id":"echo","args":{"value":1,"v\u0061lue":1}}"#, "duplicate_key"),
        (br#"{"tool_id":"echo","args":{"value":18446744073709551616}}"#, "number_range"),
        (br#"{"tool_id":"echo"}"#, "missing_field"),
        (br#"{"tool_id":"echo","args":{"value":1,"bcc":2}}"#, "unknown_argument"),
        (br#"{"tool_id":"frob","args":{}}"#, "unknown_tool"),
    ];
    let echo = ECHO.as_bytes();
    let input: Vec<&[u8]> = cases.iter().flat_map(|(line, _)| [*line, echo]).collect();
    let results = home.call("a", &id, &input.join(&b'\n'));
    assert_eq!(results.len(), 24);
    for ((line, expected), pair) in cases.iter().zip(results.chunks(2)) {
        assert_eq!(reason(&pair[0]), *expected, "{}", String::from_utf8_lossy(line));
        assert_eq!(pair[1]["status"], "ok");
    }
    let refusals = home.log().into_iter().filter(|r| r["kind"] == "refusal").count();
    assert_eq!(refusals, 12);
    assert_eq!(home.verify(), 0);
}

#[test]
fn a_line_may_be_as_long_as_an_envelope_and_no_longer() {
    let home = TestHome::new();
    let id = home.worker("a");
    let envelope_max = 1 << 20;
    let padded = |len: usize| format!("{ECHO}{}", " ".repeat(len - ECHO.len()));
    let input = format!(
        "{}\n{}\n{}\n{}\n{ECHO}",
        padded(envelope_max),
        padded(envelope_max + 1),
        " ".repeat(5 * envelope_max),
        "[".repeat(5 * envelope_max),
    );
    let results = home.call("a", &id, input.as_bytes());
    assert_eq!(results.len(), 5);
    assert_eq!(results[0]["status"], "ok");
    for result in &results[1..4] {
        assert_eq!(reason(result), "too_large");
    }
    assert_eq!(results[4]["status"], "ok");
}

#[test]
fn an_agent_stays_in_its_workspace() {
    let home = TestHome::new();
    let id = home.worker("a");
    home.worker("b");
    let secret = home.beside("secret");
    fs::write(&secret, "untouched").unwrap();
    std::os::unix::fs::symlink(home.folder.path(), home.workspace("a").join("out")).unwrap();
    let paths = [
        ("../../../../../secret", "bad_path"),
        ("../../../../home.db", "bad_path"),
        (secret.to_str().unwrap(), "bad_path"),
        ("out/secret", "link"),
        ("../../b/workspace/x", "out_of_scope"),
        ("shared/x", "not_found"),
    ];
    let input: Vec<String> = paths
        .iter()
        .flat_map(|(path, _)| {
            let read = json!({"tool_id": "fs.read", "args": {"path": path}});
            let write = json!({"tool_id": "fs.write", "args": {"path": path, "text": "gone"}});
            [read.to_string(), write.to_string()]
        })
        .collect();
    let results = home.call("a", &id, input.join("\n").as_bytes());
    for ((path, expected), pair) in paths.iter().zip(results.chunks(2)) {
        assert_eq!([reason(&pair[0]), reason(&pair[1])], [*expected; 2], "{path}");
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "untouched");
    assert_eq!(home.verify(), 0);
}

#[test]
fn calls_can_stand_in_a_file() {
    let home = TestHome::new();
    let id = home.worker("a");
    let file = home.text_beside("calls");
    fs::write(&file, format!("{ECHO}\n\n{ECHO}")).unwrap();
    let path = home.path();
    let args = ["call", &path, "--agent", "a", "--token", &id];
    let results = run(args.into_iter().chain([&*file, "--json"])).fine().json();
    assert_eq!(results.len(), 2);
    let records = home.log().len();
    run(args.into_iter().chain([&*home.text_beside("missing")])).failed(1);
    assert_eq!(home.log().len(), records);
    // Nothing to do is done.
    assert_eq!(home.call_run("a", &id, b"").fine().out, "");
    assert_eq!(home.call_run("a", &id, b"\n \n").fine().out, "");
}

/// Many refusals in a row are counted together, and each is answered all the same.
#[test]
fn a_flood_of_refusals_is_answered() {
    let home = TestHome::new();
    let id = home.worker("a");
    let results = home.call("a", &id, "x\n".repeat(300).as_bytes());
    assert_eq!(results.len(), 300);
    assert!(results.iter().all(|result| reason(result) == "malformed"));
    let log = home.log();
    assert!(log.len() < 60, "{}", log.len());
    assert!(log.iter().any(|record| record["kind"] == "refusals"));
    assert_eq!(home.verify(), 0);
}
