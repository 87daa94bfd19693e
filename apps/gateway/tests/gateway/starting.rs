//! Servers that take their time to start, or never do.

use std::fs;

use serde_json::{Value, json};
use syscap::format::reason::Reason;

use crate::bench::{Bench, GatewayProcess, refusal, text, until};

fn two(bench: &Bench) -> [String; 2] {
    fs::create_dir_all(bench.server("even")).unwrap();
    ["odd", "even"].map(|name| format!("server={name}:{}", bench.server(name).display()))
}

/// A session, and what the client is told at its beginning.
fn begin(mut gateway: GatewayProcess) -> (GatewayProcess, String) {
    let begun = gateway.request(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"}}),
    );
    gateway.notify("notifications/initialized", json!({}));
    let told = begun["result"]["instructions"].as_str().unwrap_or_default().to_owned();
    (gateway, told)
}

fn code(answer: &Value) -> Value {
    refusal(answer)["code"].clone()
}

/// A tool that is on record and granted is there, though its server is still starting: its calls
/// are to be made again later.
#[test]
fn pinned_tool_of_a_starting_server_has_no_provider() {
    let bench = Bench::new();
    let [odd, even] = two(&bench);
    let words = [odd.as_str(), &even, "class=local_write=*"];
    let mut gateway = bench.start(&words).session();
    assert_eq!(text(&gateway.call("odd_wrongId", json!({}))), "this");
    assert!(gateway.end().success());
    fs::write(bench.server("odd").join("hang"), "").unwrap();
    let (mut gateway, told) = begin(bench.start(&words));
    assert!(told.contains("odd") && !told.contains("even_"), "{told}");
    for tool in ["odd_echo", "odd_wrongId"] {
        let refused = gateway.call(tool, json!({}));
        assert_eq!(code(&refused), Reason::NoProvider.code(), "{refused}");
    }
    let unknown = gateway.call("odd_nothing", json!({}));
    assert_eq!(code(&unknown), Reason::UnknownTool.code(), "{unknown}");
    assert_eq!(text(&gateway.call("even_echo", json!({}))), "{}");
    fs::remove_file(bench.server("odd").join("hang")).unwrap();
    until("it runs", || gateway.call("odd_echo", json!({}))["isError"] != true);
    assert_eq!(text(&gateway.call("odd_wrongId", json!({}))), "this");
    assert!(gateway.end().success());
    bench.settled();
}

/// A token that was issued before a server came lacks its tools; the next start says so where the
/// client reads it.
#[test]
fn next_start_says_which_tools_the_token_lacks() {
    let bench = Bench::new();
    let [odd, even] = two(&bench);
    let words = [odd.as_str(), &even, "class=local_write=*"];
    fs::write(bench.server("odd").join("hang"), "").unwrap();
    let (gateway, _) = begin(bench.start(&words));
    assert!(gateway.end().success());
    fs::remove_file(bench.server("odd").join("hang")).unwrap();
    let (mut gateway, told) = begin(bench.start(&words));
    assert!(told.contains("odd.echo") && told.contains("not_granted"), "{told}");
    // Where it says how, no model reads.
    assert!(!told.contains("reissue"), "{told}");
    until("the operator reads the command", || gateway.said().contains("token reissue"));
    assert_eq!(code(&gateway.call("odd_echo", json!({}))), Reason::NotGranted.code());
    assert!(gateway.end().success());
    bench.settled();
}

/// The client of a server that ends before it has said what it is is told its status and its last
/// line.
#[test]
fn crash_at_start_is_told_with_status_and_last_line() {
    let bench = Bench::new();
    fs::write(bench.server("odd").join("refuse"), "").unwrap();
    let mut gateway = bench.gateway(&[]);
    let begun = gateway.request(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"}}),
    );
    let why = begun["error"]["message"].as_str().unwrap();
    assert!(why.contains("exit status: 3") && why.contains("odd: it does not start"), "{why}");
    assert!(!gateway.wait().success());
}

/// A client of the older wire has no server asked what one of that wire doesn't know.
#[test]
fn client_of_the_older_wire_probes_no_server() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
    assert!(gateway.end().success());
    assert_eq!(bench.got_method("odd", "server/discover"), 0);
    assert_eq!(bench.got_method("odd", "initialize"), 1);
    bench.settled();
}

/// FastMCP prints 190 lines at the newer wire's first request. Nobody sees them: the server has
/// answered, and goes on by the older wire.
#[test]
fn lines_at_a_probe_are_not_shown() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).stateless();
    assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
    assert!(!gateway.said().contains("does not know"), "{}", gateway.said());
    assert!(gateway.end().success());
    assert_eq!(bench.got_method("odd", "server/discover"), 1);
    bench.settled();
}
