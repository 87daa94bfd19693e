//! Servers that take their time to start, or never do.

use std::fs;

use serde_json::{Value, json};
use syscap::format::Reason;

use crate::gateway::bench::{Bench, GatewayProcess, refusal, text, until};

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

/// A tool that is on record and granted is listed, though its server is still starting: its calls
/// wait for the server, and are to be made again where it does not come in time.
#[test]
fn pinned_tool_of_a_starting_server_has_no_provider() {
    let bench = Bench::new();
    let [odd, even] = two(&bench);
    let words = [odd.as_str(), &even, "class=local_write=*"];
    let mut gateway = bench.start(&words).session();
    assert_eq!(text(&gateway.call("odd_wrongId", json!({}))), "this");
    let known = gateway.request("tools/list", json!({}))["result"]["tools"].clone();
    assert!(gateway.end().success());
    fs::write(bench.server("odd").join("hang"), "").unwrap();
    let (mut gateway, told) = begin(bench.start(&words));
    assert!(told.contains("odd") && !told.contains("even_"), "{told}");
    // What a client that lists once is shown is the same.
    assert_eq!(gateway.request("tools/list", json!({}))["result"]["tools"], known);
    let calls = ["odd_echo", "odd_wrongId"].map(|tool| gateway.begin(tool, json!({})));
    for call in calls {
        let refused = gateway.result(&call);
        assert_eq!(code(&refused), Reason::NoProvider.code(), "{refused}");
        assert_eq!(refusal(&refused)["retry"], Reason::NoProvider.retry().name());
    }
    let unknown = gateway.call("odd_nothing", json!({}));
    assert_eq!(code(&unknown), Reason::UnknownTool.code(), "{unknown}");
    assert_eq!(text(&gateway.call("even_echo", json!({}))), "{}");
    let call = gateway.begin("odd_wrongId", json!({}));
    fs::remove_file(bench.server("odd").join("hang")).unwrap();
    assert_eq!(text(&gateway.result(&call)), "this");
    assert!(gateway.end().success());
    bench.settled();
}

fn extra(description: &str) -> String {
    json!([{"name": "extra", "description": description, "inputSchema": {"type": "object"}}])
        .to_string()
}

/// A server that changes a tool while it starts: the pinned definition is listed until the server
/// lists its own, and then the tool waits for an operator.
#[test]
fn tool_changed_while_its_server_starts_is_listed_no_more() {
    let bench = Bench::new();
    let [odd, even] = two(&bench);
    let (words, dir) = ([odd.as_str(), &even, "class=local_write=*"], bench.server("odd"));
    fs::write(dir.join("tools"), extra("does one thing")).unwrap();
    assert!(bench.start(&words).session().end().success());
    fs::write(dir.join("hang"), "").unwrap();
    fs::write(dir.join("tools"), extra("does another thing")).unwrap();
    let mut gateway = bench.start(&words).session();
    let listed = gateway.request("tools/list", json!({})).to_string();
    assert!(listed.contains("does one thing") && !listed.contains("another"), "{listed}");
    let call = gateway.begin("odd_extra", json!({}));
    fs::remove_file(dir.join("hang")).unwrap();
    gateway.hears("notifications/tools/list_changed");
    let listed = gateway.names();
    assert!(listed.iter().any(|name| name == "odd_echo"), "{listed:?}");
    assert!(!listed.iter().any(|name| name == "odd_extra"), "{listed:?}");
    assert_eq!(code(&gateway.result(&call)), Reason::ToolChanged.code());
    assert_eq!(bench.got_method("odd", "tools/call"), 0);
    assert!(gateway.end().success());
    bench.settled();
}

/// A server that is started again keeps its tools in the list, and no others that the record has
/// from earlier.
#[test]
fn restarting_server_keeps_the_tools_it_last_offered() {
    let (bench, name) = (Bench::new(), String::from("extra"));
    let dir = bench.server("odd");
    fs::write(dir.join("tools"), extra("of before")).unwrap();
    assert!(bench.gateway(&[]).session().end().success());
    fs::remove_file(dir.join("tools")).unwrap();
    let mut gateway = bench.gateway(&[]).session();
    let before = gateway.names();
    assert!(!before.is_empty() && !before.contains(&name), "{before:?}");
    fs::write(dir.join("hang"), "").unwrap();
    assert_eq!(code(&gateway.call("die", json!({}))), Reason::ProviderGone.code());
    gateway.hears("notifications/tools/list_changed");
    assert_eq!(gateway.names(), before);
    let call = gateway.begin("echo", json!({}));
    fs::remove_file(dir.join("hang")).unwrap();
    assert_eq!(text(&gateway.result(&call)), "{}");
    assert_eq!(gateway.names(), before);
    assert!(gateway.end().success());
    bench.settled();
}

/// A server that takes longer to list its tools than the others wait is starting until it has.
#[test]
fn server_that_lists_late_is_offered_once_it_lists() {
    let bench = Bench::new();
    let [odd, even] = two(&bench);
    let lists = bench.server("odd").join("lists");
    fs::write(&lists, "slow").unwrap();
    let mut gateway = bench.start(&[&odd, &even, "class=local_write=*"]).session();
    assert_eq!(text(&gateway.call("even_echo", json!({}))), "{}");
    assert!(!gateway.names().iter().any(|name| name.starts_with("odd_")));
    fs::remove_file(&lists).unwrap();
    gateway.hears("notifications/tools/list_changed");
    assert_eq!(text(&gateway.call("odd_echo", json!({}))), "{}");
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
