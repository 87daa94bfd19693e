//! Servers that flood, hang, die and lie: the call ends recorded, the gateway serves on.

use std::fs;

use serde_json::json;
use syscap::format::{Reason, Retry, TxOutcome};

use crate::gateway::bench::{Bench, GatewayProcess, refusal, text, until};

fn serves_on(gateway: &mut GatewayProcess) {
    until("the server runs again", || {
        gateway.call("echo", json!({"text": "on"}))["isError"] != true
    });
}

/// A server that dies, or sends a line without end, is started again; its calls are failures.
#[test]
fn a_server_that_breaks_off_is_started_again() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    for tool in ["die", "flood"] {
        // Another call is out at the same time.
        let hangs = gateway.begin("hang", json!({}));
        let broke = gateway.call(tool, json!({}));
        assert_eq!(refusal(&broke)["code"], Reason::ProviderGone.code(), "{tool}");
        let other = gateway.result(&hangs);
        assert_eq!(refusal(&other)["code"], Reason::ProviderGone.code(), "{tool}");
        serves_on(&mut gateway);
    }
    assert!(gateway.end().success());
    let starts = bench.got("odd").iter().filter(|line| *line == "start").count();
    assert_eq!(starts, 3);
    let gone = bench.outcomes().into_iter().filter(|o| o.reason == Some(Reason::ProviderGone));
    assert!(gone.count() >= 4);
    bench.settled();
}

/// A server that does not come back loses its tools; calls are refused before anything runs. The
/// model is told that waiting does not help, the operator which command shows why.
#[test]
fn a_server_that_stays_away_is_given_up() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    fs::write(bench.server("odd").join("refuse"), "").unwrap();
    gateway.call("die", json!({}));
    until("it is given up", || gateway.names().is_empty());
    gateway.command("syscap mcp ");
    for _ in 0..2 {
        let refused = gateway.call("echo", json!({}));
        let refusal = refusal(&refused);
        assert_eq!(refusal["code"], Reason::NoProvider.code());
        assert_eq!(refusal["retry"], Retry::Never.name());
    }
    // A tool that there never was has no server.
    let unknown = gateway.call("nothing", json!({}));
    assert_eq!(refusal(&unknown)["retry"], Reason::UnknownTool.retry().name());
    let command = gateway.command("syscap mcp ");
    let home = bench.home().display().to_string();
    assert!(command.contains(&home) && command.contains(&String::from("--review")), "{command:?}");
    let odd = bench.server("odd").display().to_string();
    assert_eq!(command.last(), Some(&odd));
    assert!(gateway.end().success());
    bench.settled();
}

/// A server that hangs is given up after the limit; the token is not used up by it.
#[test]
fn a_server_that_hangs_is_given_up() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&["timeout=300"]).session();
    let hung = gateway.call("hang", json!({}));
    assert_eq!(refusal(&hung)["code"], Reason::TimedOut.code());
    until("the server is told", || bench.got_method("odd", "notifications/cancelled") == 1);
    assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
    assert!(gateway.end().success());
    assert_eq!(bench.outcomes()[0].tx, TxOutcome::Unknown);
    bench.settled();
}

/// An answer beyond the cap is a failure, whatever was done for it.
#[test]
fn an_answer_over_the_cap_is_a_failure() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&["bytes=10000"]).session();
    let large = gateway.call("large", json!({"count": 20_000}));
    assert_eq!(refusal(&large)["code"], Reason::ResultTooLarge.code());
    let fits = gateway.call("large", json!({"count": 5_000}));
    assert_eq!(text(&fits).len(), 5_000);
    assert!(gateway.end().success());
    bench.settled();
}

/// Answers that come twice, to nobody, or between garbage.
#[test]
fn answers_that_nobody_waits_for_are_passed_over() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    for (tool, expected) in [("twice", "first"), ("wrongId", "this"), ("garbage", "still here")] {
        for _ in 0..3 {
            let result = gateway.call(tool, json!({}));
            assert_eq!(text(&result), expected, "{tool}: {result}");
        }
    }
    assert!(gateway.end().success());
    bench.settled();
}

/// A hundred thousand notifications cost neither memory nor the call; lists are asked for anew
/// a few times only.
#[test]
fn a_flood_of_notifications_is_dropped() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let id = gateway.id();
    let call = json!({"name": "notices", "arguments": {"count": 50_000},
        "_meta": {"progressToken": 1}});
    gateway.send(&id, "tools/call", call);
    assert_eq!(text(&gateway.result(&id)), "said");
    assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
    assert!(gateway.end().success());
    let lists = bench.got_method("odd", "tools/list");
    assert!(lists < 2_000, "{lists}");
    bench.settled();
}

/// Many calls at once: what the budget has no room for is refused, the rest is answered.
#[test]
fn a_client_that_floods_is_held_to_its_budget() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let ids: Vec<_> = (0..300).map(|n| gateway.begin("echo", json!({"n": n}))).collect();
    let mut answered = 0;
    for id in ids {
        let result = gateway.result(&id);
        if result["isError"] == true {
            assert_eq!(refusal(&result)["code"], Reason::ConcurrencyLimit.code());
        } else {
            answered += 1;
        }
    }
    assert!(answered >= 16, "{answered}");
    assert!(gateway.end().success());
    assert_eq!(bench.got_method("odd", "tools/call"), answered);
    bench.settled();
}

/// A client that vanishes with calls out.
#[test]
fn a_client_that_vanishes() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    gateway.begin("hang", json!({}));
    until("the call is out", || bench.got_method("odd", "tools/call") == 1);
    assert!(gateway.end().success());
    assert_eq!(bench.outcomes()[0].reason, Some(Reason::Cancelled));
    assert_eq!(bench.got_method("odd", "notifications/cancelled"), 1);
    assert_eq!(bench.got("odd").last().unwrap(), "end");
    bench.settled();
}

/// Lines that are no requests don't end the session.
#[test]
fn a_client_that_sends_garbage() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    for line in ["", "words", "{", "[]", "{}", "{\"jsonrpc\":\"2.0\",\"id\":1}", "\u{0}"] {
        gateway.write(line);
    }
    gateway.write(&format!("{{\"long\": \"{}\"}}", "x".repeat(5 << 20)));
    assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
    let large = gateway.call("echo", json!({"text": "x".repeat(2 << 20)}));
    assert_eq!(refusal(&large)["code"], Reason::TooLarge.code());
    assert!(gateway.end().success());
    bench.settled();
}
