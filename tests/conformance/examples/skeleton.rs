//! Where a subject in Rust begins: it takes every verb, and claims nothing yet.
//! `cargo run -p syscap-conformance -- -- target/debug/examples/skeleton`.

use std::io::{BufRead as _, Write as _, stdin, stdout};

use serde_json::{Value, json};

/// What governs the tools goes here.
struct Host;

impl Host {
    /// `{"ok": ..}`, `{"refused": why}`, for a call that waits with `"ask"`, or
    /// `{"unsupported": true}`.
    fn answer(&mut self, ask: &Value) -> Value {
        match ask.get("do").and_then(Value::as_str).unwrap_or_default() {
            // With a `folder` it opens what lies there: after a kill, or a stop.
            "start" => json!({"ok": {
                "implementation": "skeleton", "version": "1", "claims": [],
                "pids": [std::process::id()],
            }}),
            // Begins anew in an empty `folder`, under `policy`; tools work in `files`, and ask
            // `server` for pages and counts.
            "reset" | "stop" => json!({"ok": null}),
            // Makes a token: `{"ok": {"token": ..}}`.
            "grant" => json!({"unsupported": true}),
            // Decides, performs the call, and answers with what the tool gave.
            "call" => json!({"unsupported": true}),
            // Answers a call that waits, by a person's name.
            "approve" => json!({"unsupported": true}),
            // Ends a token; moves the clock; writes the log out.
            "revoke" | "advance" | "export" => json!({"unsupported": true}),
            _ => json!({"unsupported": true}),
        }
    }
}

fn main() {
    let mut host = Host;
    for line in stdin().lock().lines().map_while(Result::ok) {
        let Ok(ask) = serde_json::from_str::<Value>(&line) else { return };
        let (mut said, ends) = (host.answer(&ask), ask.get("do") == Some(&json!("stop")));
        if let (Some(said), Some(id)) = (said.as_object_mut(), ask.get("id")) {
            said.insert("id".to_owned(), id.clone());
        }
        let mut out = stdout().lock();
        if writeln!(out, "{said}").and_then(|()| out.flush()).is_err() || ends {
            return;
        }
    }
}
