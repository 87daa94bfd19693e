//! What was let through to one program does not go to another; and a server that is many.

use std::{fs, sync::Arc, thread, time::Duration};

use serde_json::{Value, json};
use syscap::Runtime;
use syscap::format::{Amounts, EffectClass, Manifest, Reason, Refused, ToolId, TxOutcome};
use syscap::provide::{HostCall, HostRan, Provider};

use crate::gateway::bench::{Bench, GatewayProcess, refusal, text, until};

fn extra(description: &str) -> String {
    json!([{"name": "extra", "description": description, "inputSchema": {"type": "object"}}])
        .to_string()
}

/// How many calls the server got.
fn calls(bench: &Bench) -> usize {
    bench.got_method("odd", "tools/call")
}

fn starts(bench: &Bench) -> usize {
    bench.got("odd").iter().filter(|line| *line == "start").count()
}

/// The reason of a call that must not be answered by the server.
fn refused(gateway: &mut GatewayProcess, tool: &str) -> Value {
    let result = gateway.call(tool, json!({}));
    refusal(&result)["code"].clone()
}

fn unheard(gateway: &mut GatewayProcess) {
    // At once, since each may wait for the server.
    let begin = |_| {
        thread::sleep(Duration::from_millis(50));
        gateway.begin("echo", json!({}))
    };
    let calls: Vec<Value> = (0..20).map(begin).collect();
    for call in calls {
        let code = refusal(&gateway.result(&call))["code"].clone();
        let fit = [Reason::NoProvider, Reason::ProviderGone, Reason::Busy]
            .map(|reason| json!(reason.code()));
        assert!(fit.contains(&code), "{code}");
    }
}

/// Nothing reaches a server that is started again and does not list its tools, whatever the one
/// before had. While it may list them yet, the pinned ones are listed.
#[test]
fn another_program_gets_nothing_under_an_old_pin() {
    for (file, what) in [("lists", "error"), ("lists", "hang"), ("mute", "")] {
        let bench = Bench::new();
        let mut gateway = bench.gateway(&[]).session();
        assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
        let path = bench.server("odd").join(file);
        fs::write(&path, what).unwrap();
        assert_eq!(refused(&mut gateway, "die"), Reason::ProviderGone.code());
        until("it is started again", || {
            starts(&bench) == 2 && bench.got_method("odd", "notifications/initialized") == 2
        });
        unheard(&mut gateway);
        assert_eq!(calls(&bench), 2, "{file} {what}");
        assert_eq!(gateway.names().is_empty(), what != "hang", "{file} {what}");
        if what == "error" {
            // Once it says what it has, it is what it was.
            fs::remove_file(&path).unwrap();
            until("it is listed", || gateway.call("echo", json!({}))["isError"] != true);
        }
        assert!(gateway.end().success());
        bench.settled();
    }
}

/// A server that says that its tools changed, and not what they are, gets no call.
#[test]
fn a_change_that_is_not_told_stops_all_calls() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let path = bench.server("odd").join("lists");
    fs::write(&path, "error").unwrap();
    gateway.call("change", json!({"text": "[]"}));
    unheard(&mut gateway);
    assert_eq!(calls(&bench), 1);
    assert!(gateway.names().is_empty());
    fs::remove_file(&path).unwrap();
    until("it is listed", || gateway.call("echo", json!({}))["isError"] != true);
    assert!(gateway.end().success());
    bench.settled();
}

/// While a server does not answer what its tools are now, a call waits, and ends in time.
#[test]
fn a_change_that_hangs_stops_all_calls() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&["timeout=300"]).session();
    fs::write(bench.server("odd").join("lists"), "hang").unwrap();
    gateway.call("change", json!({"text": "[]"}));
    for _ in 0..3 {
        assert_eq!(refused(&mut gateway, "echo"), Reason::TimedOut.code());
    }
    assert!(gateway.end().success());
    assert_eq!(calls(&bench), 1);
    bench.settled();
}

/// A call that was let through for one definition is not made once the server lists another.
#[test]
fn a_call_is_made_for_the_definition_it_was_let_through_for() {
    let bench = Bench::new();
    fs::write(bench.server("odd").join("tools"), extra("does one thing")).unwrap();
    let mut gateway = bench.gateway(&[]).session();
    gateway.call("change", json!({"text": extra("does another thing")}));
    // The kernel doesn't know yet.
    assert_eq!(refused(&mut gateway, "extra"), Reason::Busy.code());
    assert_eq!(calls(&bench), 1);
    // Others are as they were.
    assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
    assert!(gateway.end().success());
    let gone = bench.outcomes().into_iter().find(|o| o.reason == Some(Reason::Busy));
    assert_eq!(gone.unwrap().tx, TxOutcome::NoOp);
    bench.settled();
}

/// A server that has hundreds of large tools, and others each time it is asked, fills neither the
/// home nor anybody's view of it.
#[test]
fn a_server_that_is_many_is_held_to_its_share() {
    let bench = Bench::new();
    let tools = |round: usize| {
        let tool = |n: usize| {
            let argument = |k: usize| (format!("p{k}"), json!({"description": "x".repeat(100)}));
            let properties: serde_json::Map<String, Value> = (0..8).map(argument).collect();
            json!({"name": format!("r{round}_{n}"), "description": "d".repeat(100),
                "inputSchema": {"type": "object", "properties": properties}})
        };
        let all: Vec<Value> = (0..600).map(tool).collect();
        Value::from(all).to_string()
    };
    fs::write(bench.server("odd").join("tools"), tools(0)).unwrap();
    let mut gateway = bench.gateway(&[]).session();
    assert!((200..=256).contains(&gateway.names().len()));
    let access = Runtime::connect(bench.home()).unwrap();
    for round in 1..3 {
        gateway.unasked.clear();
        gateway.call("change", json!({"text": tools(round)}));
        gateway.hears("notifications/tools/list_changed");
        let tools = access.view().unwrap().tools;
        let foreign = tools.iter().filter(|tool| tool.delegated).count();
        assert!(foreign <= 512, "{foreign}");
    }
    assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
    access.close().unwrap();
    assert!(gateway.end().success());
    bench.settled();
}

struct Nobody;

impl Provider for Nobody {
    fn run(&self, _: HostCall) -> HostRan {
        let result = Err(Refused::new(Reason::Failed));
        HostRan::new(result, TxOutcome::NoOp, Amounts::ZERO)
    }
}

/// At a home that is full of tools, those that are on record serve as before.
#[test]
fn a_full_home_serves_what_is_on_record() {
    let bench = Bench::new();
    bench.gateway(&[]).session().end();
    let access = Runtime::open(bench.home()).unwrap();
    let tool =
        |n: usize| Manifest::new(ToolId::new(&format!("full.t{n}")).unwrap(), EffectClass::Read);
    let (mut next, mut at_once) = (0, 512);
    while at_once > 0 {
        let tools: Vec<Manifest> = (next..next + at_once).map(tool).collect();
        match access.provide(tools.clone(), Arc::new(Nobody)) {
            Ok(_) => {
                next += at_once;
                let ids: Vec<ToolId> = tools.into_iter().map(|tool| tool.tool).collect();
                access.withdraw(&ids).unwrap();
            }
            Err(_) => at_once /= 2,
        }
    }
    fs::write(bench.server("odd").join("tools"), extra("one too many")).unwrap();
    let mut holder = Some(access);
    for _ in 0..2 {
        let mut gateway = bench.gateway(&[]).session();
        assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
        let names = gateway.names();
        assert!(names.len() > 20 && !names.contains(&String::from("extra")), "{names:?}");
        assert!(gateway.end().success());
        // The next one holds the home itself.
        holder.take().map_or(Ok(()), |holder| holder.close()).unwrap();
    }
    bench.settled();
}
