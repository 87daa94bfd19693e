//! The contract of `bindings/contract/calls.json`: what a client of any language gets for each call, and
//! what comes on record. Written by this test (`UPDATE=1`), and held against it.

use std::fs;
use std::path::{Path, PathBuf};

use host_support::{end, new_home, records};
use serde_json::{Value, json};
use syscap::policy::Policy;
use syscap::prelude::*;

/// The members of an error that are the same in every home.
const ERROR: [&str; 6] = ["kind", "reason", "field", "allowed", "retry", "output"];

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bindings/contract/calls.json")
}

/// The calls, in their order: each sees what those before have left.
fn calls() -> Vec<Value> {
    let call = |tool: &str, args: Value| json!({ "tool": tool, "args": args });
    let keyed =
        |key: &str, tool: &str, args: Value| json!({ "tool": tool, "args": args, "key": key });
    let mut calls = Vec::new();
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1.5),
        json!(1e300),
        json!(""),
        json!("\u{1f41d}\u{202e}\u{0}"),
        json!("x".repeat(2_000)),
        json!([]),
        json!([1, [2, [3]]]),
        json!({}),
        json!({ "a": { "b": [null, "c"] }, "": 1 }),
        json!([[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]),
        json!(false),
        json!(-0.5),
        json!(i64::MIN + 1),
        json!(1_u64 << 53),
        json!("line\nline\r\n\ttab"),
        json!("\u{fc}\u{20ac}\u{10ffff}"),
        json!({ "$other": 1 }),
        json!({ "$lit": 1, "more": 2 }),
        json!([{ "a": 1 }, { "a": [] }]),
        json!("y".repeat(255)),
        json!({ "10": 1, "9": 2, "a": 3, "B": 4 }),
    ];
    calls.extend(values.map(|value| call("echo", json!({ "value": value }))));
    // What the manifest says of arguments.
    for args in [json!({}), json!({ "value": 1, "more": 2 }), json!([]), json!("x"), json!(null)] {
        calls.push(call("echo", args));
    }
    for (tool, args) in [
        ("none.such", json!({})),
        ("No Tool", json!({})),
        ("fs.list", json!({})),
        ("memory.list", json!({})),
        ("shell", json!({ "argv": ["true"] })),
        ("org.list_agents", json!({})),
    ] {
        calls.push(call(tool, args));
    }
    let write = |path: &str, text: &str| call("fs.write", json!({ "path": path, "text": text }));
    let read = |path: &str| call("fs.read", json!({ "path": path }));
    calls.extend([
        read("a.txt"),
        write("a.txt", "one\ntwo\nthree\n"),
        read("a.txt"),
        call("fs.read", json!({ "path": "a.txt", "offset": 4, "max_bytes": 3 })),
        call("fs.read", json!({ "path": "a.txt", "max_bytes": 0 })),
        call("fs.read", json!({ "path": 7 })),
        call("fs.stat", json!({ "path": "none.txt", "digest": true })),
        write("notes/b.txt", "x"),
        call("fs.write", json!({ "path": "notes/b.txt", "text": "x", "parents": true })),
        call("fs.write", json!({ "path": "a.txt", "text": "y", "create_only": true })),
        call("fs.write", json!({ "path": "c.bin", "bytes": { "$bytes": "AAECAw==" } })),
        call("fs.write", json!({ "path": "c.bin", "text": "x", "bytes": { "$bytes": "AA==" } })),
        call("fs.write", json!({ "path": "d.txt" })),
        read("c.bin"),
        call("fs.write", json!({ "path": "a.txt", "text": "one\n2\nthree\n", "diff": true })),
        call("fs.edit", json!({ "path": "a.txt", "old": "2", "new": "two" })),
        call("fs.edit", json!({ "path": "a.txt", "old": "four", "new": "4" })),
        call("fs.edit", json!({ "path": "a.txt", "old": "e", "new": "E" })),
        call("fs.edit", json!({ "path": "a.txt", "old": "x", "new": "x" })),
        call("fs.search", json!({ "path": "", "text": "two" })),
        call("fs.move", json!({ "from": "a.txt", "to": "e.txt" })),
        read("a.txt"),
        read("e.txt"),
        call("fs.delete", json!({ "path": "c.bin" })),
        call("fs.delete", json!({ "path": "c.bin" })),
        call("fs.delete", json!({ "path": "notes" })),
        call("fs.delete", json!({ "path": "notes", "folder": true })),
    ]);
    for path in ["../x", "/etc/passwd", "", "a\\b", "other/x", "notes/", ".", "a//b", "\u{0}"] {
        calls.push(read(path));
    }
    for path in ["secret/x", "x\u{202e}y.txt", &"n/".repeat(300), &"n".repeat(300)] {
        calls.push(write(path, "x"));
    }
    // Once for a key; the same key for something else; what was refused is free.
    calls.extend([
        keyed("k1", "fs.write", json!({ "path": "k.txt", "text": "1" })),
        keyed("k1", "fs.write", json!({ "path": "k.txt", "text": "1" })),
        keyed("k1", "fs.write", json!({ "path": "k.txt", "text": "2" })),
        keyed("k1", "echo", json!({ "value": 1 })),
        keyed("k1", "echo", json!({ "value": 1 })),
        keyed("k2", "fs.read", json!({ "path": "later.txt" })),
        write("later.txt", "now"),
        keyed("k2", "fs.read", json!({ "path": "later.txt" })),
        keyed("a key", "echo", json!({ "value": 1 })),
        keyed("", "echo", json!({ "value": 1 })),
        keyed(&"k".repeat(65), "echo", json!({ "value": 1 })),
    ]);
    let memory = |verb: &str, args: Value| call(&format!("memory.{verb}"), args);
    calls.extend([
        memory("read", json!({ "key": "a" })),
        memory("write", json!({ "key": "a", "value": "text" })),
        memory("read", json!({ "key": "a" })),
        memory("write", json!({ "key": "a/b", "value": "x" })),
        memory("write", json!({ "key": "b", "value": "x".repeat(3_000) })),
        memory("delete", json!({ "key": "a" })),
        memory("delete", json!({ "key": "a" })),
    ]);
    // A person is asked, and the repeat is told so.
    calls.extend([
        call("fs.write", json!({ "path": "asked/x.txt", "text": "x" })),
        call("fs.write", json!({ "path": "asked/x.txt", "text": "x" })),
    ]);
    // A reference to what nobody was given, and one that is none.
    for of in
        [json!({ "$ref": { "record": 1_000_000, "path": [] } }), json!({ "$lit": { "$ref": 1 } })]
    {
        calls.push(call("echo", json!({ "value": of })));
    }
    calls
}

/// Writes ask where the path begins so, and are refused below another.
const POLICY: &str = r#"{"v": 1, "constraints": [
    {"id": "asked", "effect": "deny", "subject": {"tool_id": "fs.write"},
     "when": {"op": "within", "args": ["args.path", "workspace/asked"]},
     "on_fail": "ask", "reason": "Somebody looks."},
    {"id": "secret", "effect": "deny", "subject": {"tool_id": "fs.write"},
     "when": {"op": "within", "args": ["args.path", "workspace/secret"]},
     "on_fail": "block", "reason": "Not there."},
    {"id": "rest", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
     "on_fail": "block", "reason": "The rest."}]}"#;

/// What is the same in every home of an answer.
fn answered(answer: &ToolResult) -> Value {
    let value: Value = serde_json::from_str(&answer.to_json()).unwrap();
    match answer.reason() {
        None => {
            json!({ "status": "ok", "tx_outcome": answer.tx_outcome().name(), "result": value })
        }
        Some(_) => {
            let kept = ERROR.iter().filter_map(|name| Some((*name, value.get(*name)?.clone())));
            let mut error: serde_json::Map<String, Value> =
                kept.map(|(name, value)| (name.to_owned(), value)).collect();
            if error.get("field") == Some(&json!("$ref.record")) {
                // Numbers of records of this home.
                error.remove("allowed");
            }
            json!({ "status": "error", "tx_outcome": answer.tx_outcome().name(), "error": error })
        }
    }
}

#[test]
fn contract_is_what_the_library_answers() {
    let (_dir, home) = new_home();
    let policy = Policy::from_json(POLICY.as_bytes()).unwrap();
    let rt = Options::new().policy(policy).create(&home).unwrap();
    let tools = [
        "echo",
        "fs.delete",
        "fs.edit",
        "fs.move",
        "fs.read",
        "fs.search",
        "fs.stat",
        "fs.write",
        "memory.delete",
        "memory.read",
        "memory.write",
    ];
    let session =
        rt.session("a", rt.issue(Grant::to("a").tools(tools).workspace()).unwrap()).unwrap();
    let made = calls().into_iter().map(|call| {
        let before = records(&home).len();
        let args = call["args"].to_string();
        let request = session.request(call["tool"].as_str().unwrap());
        let request = request.json(&args, Escapes::Read);
        let request = match call["key"].as_str() {
            Some(key) => request.key(key),
            None => request,
        };
        let answer = request.wait().unwrap();
        let kinds: Vec<Value> =
            records(&home)[before..].iter().map(|it| json!(it.body.kind().name())).collect();
        json!({ "call": call, "answer": answered(&answer), "records": kinds })
    });
    let lines: Vec<String> = made.map(|one| one.to_string()).collect();
    assert!(lines.len() >= 100, "{}", lines.len());
    let policy: Value = serde_json::from_str(POLICY).unwrap();
    let text = format!(
        "{{\"version\": 1, \"policy\": {policy},\n\"tools\": {},\n\"calls\": [\n{}\n]}}\n",
        json!(tools),
        lines.join(",\n")
    );
    if std::env::var_os("UPDATE").is_some() {
        fs::write(file(), &text).unwrap();
    }
    let written = fs::read_to_string(file()).unwrap();
    for (line, wanted) in text.lines().zip(written.lines()) {
        assert_eq!(line, wanted);
    }
    assert_eq!(text.len(), written.len());
    end(&rt, &home);
}
