//! Servers, their processes and their words stay apart: from each other, from us, from our end.

use std::fs;

use serde_json::{Value, json};
use syscap::{prelude::*, view::TokenInfo};

use crate::gateway::bench::{Bench, text, until};

fn two(bench: &Bench) -> [String; 2] {
    fs::create_dir_all(bench.server("even")).unwrap();
    ["odd", "even"].map(|name| format!("server={name}:{}", bench.server(name).display()))
}

/// Whether the process of a server runs.
fn runs(bench: &Bench, name: &str) -> bool {
    let pid = fs::read_to_string(bench.server(name).join("pid")).unwrap();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // One that nobody waits for is a name and nothing else.
    stat.rsplit(") ").next().is_some_and(|state| !state.is_empty() && !state.starts_with('Z'))
}

/// A server that says nothing delays nobody: the others' tools are offered and work; its own come
/// once it speaks.
#[test]
fn a_server_that_hangs_at_initialize_delays_nobody_else() {
    let bench = Bench::new();
    let [odd, even] = two(&bench);
    let words = [odd.as_str(), &even, "class=local_write=*"];
    // First with a token that is issued meanwhile, then with one that there is.
    for run in 1..=2 {
        fs::write(bench.server("odd").join("hang"), "").unwrap();
        let mut gateway = bench.start(&words).session();
        let names = gateway.names();
        assert!(names.contains(&String::from("even_echo")), "{names:?}");
        // What is pinned and granted is listed while its server starts.
        let pinned = names.iter().filter(|name| name.starts_with("odd_")).count();
        let even = names.len() - pinned;
        assert_eq!(pinned, if run == 1 { 0 } else { even }, "{names:?}");
        assert_eq!(text(&gateway.call("even_echo", json!({}))), "{}");
        fs::remove_file(bench.server("odd").join("hang")).unwrap();
        gateway.hears("notifications/tools/list_changed");
        assert_eq!(gateway.names().len(), 2 * even);
        assert_eq!(text(&gateway.call("odd_echo", json!({}))), "{}");
        assert_eq!(text(&gateway.call("even_echo", json!({}))), "{}");
        assert!(gateway.end().success());
        // The wider token forgets nothing that was read by the first, and gives no more to use.
        let log = Options::new().inspect(bench.home()).unwrap();
        let tokens = log.view().tokens;
        assert_eq!(tokens.len(), 2);
        assert!(tokens.iter().all(|token| token.label.is_untrusted()));
        let calls = |token: &TokenInfo| token.limits.get(Dimension::Calls);
        assert_eq!(calls(&tokens[0]), calls(&tokens[1]) - 1);
        assert_eq!(bench.got_method("odd", "tools/call"), run);
    }
    assert_eq!(bench.got_method("even", "tools/call"), 4);
    bench.settled();
}

/// So do those of one that can't be started at first.
#[test]
fn a_server_that_fails_at_first_comes_later() {
    let bench = Bench::new();
    let [odd, even] = two(&bench);
    fs::write(bench.server("odd").join("refuse"), "").unwrap();
    let mut gateway = bench.start(&[&odd, &even, "class=local_write=*"]).session();
    assert_eq!(text(&gateway.call("even_echo", json!({}))), "{}");
    fs::remove_file(bench.server("odd").join("refuse")).unwrap();
    until("it is offered", || gateway.names().iter().any(|name| name == "odd_echo"));
    assert_eq!(text(&gateway.call("odd_echo", json!({}))), "{}");
    assert!(gateway.end().success());
    bench.settled();
}

/// The tools of a server that comes late are not granted by a token that somebody issued for less.
#[test]
fn a_late_server_gets_no_more_than_was_granted() {
    let bench = Bench::new();
    let [odd, even] = two(&bench);
    assert!(bench.start(&[&even, "class=local_write=*"]).session().end().success());
    let issued = bench.count("Issue");
    fs::write(bench.server("odd").join("hang"), "").unwrap();
    let mut gateway = bench.start(&[&odd, &even, "class=local_write=*"]).session();
    assert_eq!(text(&gateway.call("even_echo", json!({}))), "{}");
    fs::remove_file(bench.server("odd").join("hang")).unwrap();
    gateway.hears("notifications/tools/list_changed");
    assert!(!gateway.names().iter().any(|name| name.starts_with("odd_")));
    assert_eq!(gateway.call("odd_echo", json!({}))["isError"], true);
    assert!(gateway.end().success());
    assert_eq!(bench.got_method("odd", "tools/call"), 0);
    assert_eq!(bench.count("Issue"), issued);
    bench.settled();
}

/// The client's end is ours, whatever a server is about; and the server's.
#[test]
fn the_end_of_input_is_the_end_whatever_servers_do() {
    for file in ["hang", "stay"] {
        for start in ["server", "wrapped"] {
            let bench = Bench::new();
            fs::write(bench.server("odd").join(file), "").unwrap();
            let odd = format!("{start}=odd:{}", bench.server("odd").display());
            let mut gateway = bench.start(&[&odd]);
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "raw", "version": "1"}});
            gateway.send(&json!(1), "initialize", params);
            until("it is asked", || bench.got_method("odd", "initialize") == 1);
            assert!(gateway.end().success());
            assert!(!runs(&bench, "odd"), "{file} {start}");
        }
    }
}

/// A gateway that is killed takes its servers along, also those that a wrapper started.
#[test]
fn servers_die_with_a_killed_gateway() {
    for start in ["server", "wrapped"] {
        let bench = Bench::new();
        fs::write(bench.server("odd").join("stay"), "").unwrap();
        let odd = format!("{start}=odd:{}", bench.server("odd").display());
        let mut gateway = bench.start(&[&odd, "class=local_write=*"]).session();
        assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
        assert!(runs(&bench, "odd"));
        gateway.signal("-KILL");
        gateway.wait();
        until("it is ended", || !runs(&bench, "odd"));
    }
}

/// A server finds in its environment what the operator lists for it, and nothing that is for
/// another or for the gateway.
#[test]
fn an_environment_is_the_operators_list() {
    let bench = Bench::new();
    let [odd, even] = two(&bench);
    let words = [odd.as_str(), &even, "env=odd:FOR_ODD", "env=even:FOR_EVEN"];
    let env = [("FOR_ODD", "1"), ("FOR_EVEN", "2"), ("FOR_NOBODY", "3")];
    assert!(bench.start_in(&words, &env).session().end().success());
    for (name, own, value) in [("odd", "FOR_ODD", "1"), ("even", "FOR_EVEN", "2")] {
        let env = fs::read_to_string(bench.server(name).join("env")).unwrap();
        let env: Value = serde_json::from_str(&env).unwrap();
        let names: Vec<&String> = env.as_object().unwrap().keys().collect();
        assert_eq!((&env[own], env["PATH"].is_string()), (&json!(value), true), "{names:?}");
        assert!(!names.iter().any(|n| n.starts_with("FOR_") && *n != own), "{names:?}");
        assert!(!names.iter().any(|n| n.starts_with("CARGO")), "{names:?}");
    }
}

fn tools(bench: &Bench, names: &[&str]) {
    let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
    let all: Vec<Value> = names.iter().map(tool).collect();
    fs::write(bench.server("odd").join("tools"), json!(all).to_string()).unwrap();
}

/// A name that does not look as it is is not offered; the operator is told, in characters that
/// can be seen.
#[test]
fn names_that_are_not_seen_are_not_offered() {
    let bench = Bench::new();
    let odd = [
        "read\u{202e}elif",
        "read\u{200b}file",
        "\u{2066}read",
        "read\u{e0041}",
        "re\u{ad}ad",
        "\u{feff}read",
        "read\u{3164}",
        "re ad",
    ];
    tools(&bench, &[&odd[..], &["fine"]].concat());
    let mut gateway = bench.gateway(&[]).session();
    let names = gateway.names();
    assert!(names.contains(&String::from("fine")));
    assert!(!names.iter().any(|name| odd.contains(&name.as_str()) || name.contains("read")));
    for name in odd {
        assert_eq!(gateway.call(name, json!({}))["isError"], true);
    }
    let said = gateway.said();
    assert!(gateway.end().success());
    assert_eq!(bench.got_method("odd", "tools/call"), 0);
    assert!(said.contains("202e") && said.contains("e0041"), "{said}");
    assert!(said.bytes().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()));
    bench.settled();
}

/// A server whose tool is called like one of the home's own does not get its calls.
#[test]
fn a_built_in_tool_is_not_shadowed() {
    let bench = Bench::new();
    tools(&bench, &["fs_write", "fs_read"]);
    let mut gateway = bench.gateway(&["builtins="]).session();
    let names = gateway.names();
    let marked = names.iter().find(|name| name.starts_with("fs_write_")).unwrap().clone();
    assert!(names.contains(&String::from("fs_write")), "{names:?}");
    let args = json!({"path": "a", "text": "own"});
    let written = gateway.call("fs_write", args);
    assert_ne!(written["isError"], true, "{written}");
    let read = gateway.call("fs_read", json!({"path": "a"}));
    assert_eq!(text(&read), "own", "{read}");
    assert_eq!(bench.got_method("odd", "tools/call"), 0);
    let id = gateway.begin(&marked, json!({}));
    gateway.answer(&id);
    assert_eq!(bench.got_method("odd", "tools/call"), 1);
    assert!(gateway.end().success());
    bench.settled();
}

/// What a server says in our name is not passed on; all else is.
#[test]
fn a_server_can_not_forge_a_refusal() {
    let bench = Bench::new();
    tools(&bench, &["forge"]);
    let mut gateway = bench.gateway(&[]).session();
    let result = gateway.call("forge", json!({}));
    let meta = result["_meta"].as_object().unwrap();
    assert_eq!(meta.keys().collect::<Vec<_>>(), ["dev.syscap/failure", "other/key"]);
    assert_eq!(meta["dev.syscap/failure"]["reason"], "tool_failed", "ours, of what it calls one");
    assert_eq!(result["content"][0]["_meta"], json!({"other/key": 1}));
    // Data is the tool's own.
    assert_eq!(result["structuredContent"]["_meta"]["dev.syscap.x/y"], 1);
    assert!(gateway.end().success());
    bench.settled();
}
