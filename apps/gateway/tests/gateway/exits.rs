//! Servers that end, and answers that nobody can read: the call in flight fails at once.

use std::fs;

use serde_json::{Value, json};
use syscap::format::Reason;

use crate::gateway::bench::{Bench, refusal, text, until};

fn is_running(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|state| !state.is_empty() && !state.starts_with('Z'))
}

/// Has the server list a tool that it has besides.
fn offer(bench: &Bench, tool: &str) {
    let schema = json!({"type": "object"});
    let tools = json!([{"name": tool, "inputSchema": schema}]);
    fs::write(bench.server("odd").join("tools"), tools.to_string()).unwrap();
}

/// The exit of a server is seen though another process holds its output, and that one ends too.
#[test]
fn server_exit_fails_its_calls_though_its_output_stays_open() {
    for start in ["server", "wrapped"] {
        let bench = Bench::new();
        offer(&bench, "orphan");
        let odd = format!("{start}=odd:{}", bench.server("odd").display());
        let mut gateway = bench.start(&[&odd, "class=local_write=*"]).session();
        let hangs = gateway.begin("hang", json!({}));
        let orphaned = gateway.call("orphan", json!({}));
        assert_eq!(refusal(&orphaned)["code"], Reason::ProviderGone.code(), "{start}");
        let other = gateway.result(&hangs);
        assert_eq!(refusal(&other)["code"], Reason::ProviderGone.code(), "{start}");
        let child = fs::read_to_string(bench.server("odd").join("child")).unwrap();
        until("what it started ends", || !is_running(&child));
        until("it runs again", || gateway.call("echo", json!({}))["isError"] != true);
        assert!(gateway.end().success());
        bench.settled();
    }
}

/// An answer that can't be read fails its call, and no other.
#[test]
fn unreadable_answer_fails_its_call_at_once() {
    let bench = Bench::new();
    offer(&bench, "muddle");
    let mut gateway = bench.gateway(&[]).session();
    for how in ["surrogate", "deep", "batch", "empty"] {
        let slow = gateway.begin("slow", json!({"count": 50}));
        let params = json!({"name": "muddle", "arguments": {"text": how}});
        let answer = gateway.request("tools/call", params);
        assert_eq!(answer["error"]["code"], -32603, "{how}: {answer}");
        assert_eq!(text(&gateway.result(&slow)), "slept");
    }
    assert!(gateway.end().success());
    assert_eq!(bench.got("odd").iter().filter(|line| *line == "start").count(), 1);
    bench.settled();
}

/// A list that goes round in a circle is taken as far as it goes, and what it says twice once.
#[test]
fn cursor_that_does_not_advance_ends_the_list() {
    let bench = Bench::new();
    fs::write(bench.server("odd").join("circle"), "").unwrap();
    offer(&bench, "extra");
    let mut gateway = bench.gateway(&[]).session();
    let names = gateway.names();
    assert!(names.contains(&String::from("extra")) && names.contains(&String::from("echo")));
    assert_eq!(bench.got_method("odd", "tools/list"), 2);
    assert!(gateway.end().success());
    bench.settled();
}

/// A message with a key that stands twice is refused: no two readers see two calls.
#[test]
fn repeated_key_of_a_client_is_refused() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let line = |params: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":71,\"method\":\"tools/call\",\"params\":{params}}}\n")
    };
    gateway.write(&line(r#"{"name":"echo","arguments":{"text":"a","text":"b"}}"#));
    let refused = gateway.answer(&json!(71));
    let code = &refused["result"]["_meta"]["dev.syscap/refusal"]["code"];
    assert_eq!(*code, Reason::DuplicateKey.code(), "{refused}");
    gateway.write(&line(r#"{"name":"echo","name":"touch","arguments":{"text":"b"}}"#));
    let refused = gateway.answer(&json!(71));
    assert!(refused["error"]["code"].is_i64(), "{refused}");
    assert_eq!(bench.got_method("odd", "tools/call"), 0);
    assert!(gateway.end().success());
    bench.settled();
}

/// What a server writes to its standard error comes under its name, acts on no terminal, and is
/// bounded.
#[test]
fn standard_error_of_a_server_is_prefixed_escaped_and_bounded() {
    let bench = Bench::new();
    offer(&bench, "complain");
    let mut gateway = bench.gateway(&[]).session();
    assert_eq!(text(&gateway.call("complain", json!({"count": 10_000}))), "complained");
    until("it is passed on", || gateway.said().contains("line 0"));
    assert!(gateway.call("echo", Value::Null)["isError"] != true);
    let said = gateway.said();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("line ")).collect();
    assert!(lines.iter().all(|line| line.starts_with("syscap mcp: server odd: ")), "{lines:?}");
    assert!(said.is_ascii() && !said.contains('\u{1b}'));
    assert!((1..=200).contains(&lines.len()), "{}", lines.len());
    assert!(gateway.end().success());
    bench.settled();
}
