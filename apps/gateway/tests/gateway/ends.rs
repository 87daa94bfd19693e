//! How a gateway ends, and how it does not begin.

use std::time::Duration;

use serde_json::json;
use syscap::format::Reason;

use crate::gateway::bench::{Bench, text, until};

/// Calls that end soon after the input are answered; nothing is lost of them.
#[test]
fn the_end_of_input_is_no_end_of_calls() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let ids: Vec<_> =
        (0..5).map(|n| gateway.begin("slow", json!({"count": 100, "n": n}))).collect();
    drop(ids);
    assert!(gateway.end().success());
    assert!(bench.outcomes().iter().all(|outcome| outcome.reason.is_none()));
    assert_eq!(bench.outcomes().len(), 5);
    assert_eq!(bench.got("odd").last().unwrap(), "end");
    bench.settled();
}

/// A server of the newer wire that waits for the end of its subscriptions is told of it.
#[test]
fn subscriptions_end_before_the_server() {
    let bench = Bench::new();
    let server = format!("server=odd:{} new", bench.server("odd").display());
    let mut gateway = bench.start(&[&server]).stateless();
    gateway.request("tools/list", json!({}));
    until("it is subscribed", || bench.got_method("odd", "subscriptions/listen") == 1);
    // What it says after that has come, so it was told that it is.
    gateway.request("prompts/list", json!({}));
    assert!(gateway.end().success());
    let got = bench.got("odd");
    let told = got.iter().rposition(|line| line.contains("notifications/cancelled")).unwrap();
    assert_eq!(got.len() - told, 2, "{got:?}");
    assert_eq!(got.last().unwrap(), "end");
}

/// Asked to end, it gives up what runs, records it, and ends its servers.
#[test]
fn signals_end_it_in_order() {
    for name in ["-TERM", "-INT"] {
        let bench = Bench::new();
        let mut gateway = bench.gateway(&[]).session();
        gateway.begin("hang", json!({}));
        until("the call is out", || bench.got_method("odd", "tools/call") == 1);
        gateway.signal(name);
        assert!(gateway.wait().success(), "{name}");
        assert_eq!(bench.outcomes()[0].reason, Some(Reason::Cancelled));
        assert_eq!(bench.got("odd").last().unwrap(), "end");
        bench.settled();
    }
}

/// Killed, it leaves a home that recovers.
#[test]
fn a_killed_gateway_leaves_a_home_that_recovers() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    gateway.begin("hang", json!({}));
    until("the call is out", || bench.got_method("odd", "tools/call") == 1);
    gateway.signal("-KILL");
    gateway.wait();
    let mut gateway = bench.gateway(&[]).session();
    assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
    assert!(gateway.end().success());
    assert_eq!(bench.count("Intent"), 2);
    until("the orphan ends", || bench.got("odd").iter().filter(|l| *l == "end").count() == 2);
}

/// A server that can't be started, and a home that is none.
#[test]
fn gateway_that_cannot_start_says_why() {
    let bench = Bench::new();
    std::fs::write(bench.server("odd").join("refuse"), "").unwrap();
    let mut gateway = bench.gateway(&[]);
    let begun = gateway.request(
        "initialize",
        json!({"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}),
    );
    assert!(begun.get("error").is_some(), "{begun}");
    assert!(!gateway.wait().success());
    let nowhere = Bench::new();
    std::fs::remove_dir_all(nowhere.home()).unwrap();
    assert!(!nowhere.gateway(&[]).wait().success());
}

/// A client that never says anything starts no server, and was not served.
#[test]
fn a_silent_client() {
    let bench = Bench::new();
    let gateway = bench.gateway(&[]);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(gateway.end().code(), Some(1));
    assert!(bench.got("odd").is_empty());
}
