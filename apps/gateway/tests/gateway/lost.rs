//! The process that serves the home goes while a call is out: what is told of the call; and what a
//! client that goes changes for the calls of others.

use std::fs;

use serde_json::{Value, json};
use syscap::format::{Body, Recovered, Seq};
use syscap::prelude::*;

use crate::gateway::bench::{Bench, GatewayProcess, refusal, text, until};

/// Makes a call that takes a while, and returns while it is out; its id.
fn out(bench: &Bench, gateway: &mut GatewayProcess) -> Value {
    let id = gateway.begin("slow", json!({"count": 500}));
    until("the call is out", || bench.got_method("odd", "tools/call") == 1);
    id
}

fn intents(bench: &Bench) -> Vec<Seq> {
    let intent = |record: &syscap::format::Record| {
        matches!(record.body, Body::Intent(_)).then_some(record.seq)
    };
    bench.records().iter().filter_map(intent).collect()
}

fn recovered(bench: &Bench) -> Vec<(Seq, Recovered)> {
    let of = |record: syscap::format::Record| match record.body {
        Body::Recovery(recovery) => Some((recovery.intent, recovery.verdict)),
        _ => None,
    };
    bench.records().into_iter().filter_map(of).collect()
}

/// It is said not to be known, with the record of its intent and the command that says what it
/// did; it is not made again.
#[test]
fn lost_call_is_reported_as_unknown() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let id = out(&bench, &mut gateway);
    bench.kill_server();
    let result = gateway.result(&id);
    let told = refusal(&result);
    let intent = intents(&bench)[0];
    assert_eq!(told["reason"], "outcome_unknown", "{told}");
    assert_eq!((&told["effect"], &told["intent"]), (&json!("unknown"), &json!(intent.get())));
    let command = format!("syscap recover resolve {} {intent} done", bench.home().display());
    gateway.said_with(&command);
    assert!(!told["next"].as_str().unwrap().contains("syscap "), "{told}");
    assert!(!text(&result).contains("syscap ") && text(&result).starts_with("Call unknown"));
    assert_eq!(recovered(&bench), [(intent, Recovered::Unknown)]);
    // Who sends the request once more is told the same.
    gateway.send(&id, "tools/call", json!({"name": "slow", "arguments": {"count": 500}}));
    let again = gateway.result(&id);
    let told = refusal(&again);
    assert_eq!((&told["effect"], &told["intent"]), (&json!("unknown"), &json!(intent.get())));
    // It goes on, and nothing was made twice.
    assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
    assert_eq!(bench.got_method("odd", "tools/call"), 2);
    assert!(gateway.end().success());
    // It is what the command is for.
    let log = Options::new().inspect(bench.home()).unwrap();
    let unresolved = log.unresolved().unwrap();
    assert_eq!(unresolved.iter().map(|call| call.intent).collect::<Vec<_>>(), [intent]);
    assert_eq!(intents(&bench).len(), 2);
}

/// What only reads is made again, and answered.
#[test]
fn a_lost_call_that_only_reads_is_made_again() {
    let bench = Bench::new();
    let server = format!("server=odd:{}", bench.server("odd").display());
    let mut gateway = bench.start(&[&server, "class=read=*"]).session();
    let id = out(&bench, &mut gateway);
    bench.kill_server();
    assert_eq!(text(&gateway.result(&id)), "slept");
    assert_eq!(bench.got_method("odd", "tools/call"), 2);
    assert!(gateway.end().success());
    let intents = intents(&bench);
    assert_eq!((intents.len(), recovered(&bench)), (2, vec![(intents[0], Recovered::NotDone)]));
}

/// What the next holder refuses for another reason has run all the same.
#[test]
fn a_lost_call_is_not_refused_afterwards() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let id = out(&bench, &mut gateway);
    let beside = Runtime::connect(bench.home()).unwrap();
    let token = beside.view().unwrap().tokens[0].id;
    beside.revoke(token).unwrap();
    beside.close().unwrap();
    bench.kill_server();
    let result = gateway.result(&id);
    let told = refusal(&result);
    let intent = json!(intents(&bench)[0].get());
    assert_eq!((&told["effect"], &told["intent"]), (&json!("unknown"), &intent));
    // The next is what it is.
    let next = gateway.call("echo", json!({}));
    assert_eq!(refusal(&next)["reason"], "revoked");
    assert_eq!(bench.got_method("odd", "tools/call"), 1);
    assert!(gateway.end().success());
}

/// Whose gateway was there first makes no difference: it ends, and the call of another goes on.
#[test]
fn call_outlives_the_client_that_was_there_first() {
    let bench = Bench::new();
    for kill in [false, true] {
        let even = bench.server("even");
        fs::create_dir_all(&even).unwrap();
        let server = format!("server=even:{}", even.display());
        let first = bench.start(&[&server, "class=local_write=*"]).session();
        let mut gateway = bench.gateway(&[]).session();
        let id = gateway.begin("slow", json!({"count": 100}));
        until("the call is out", || bench.got_method("odd", "tools/call") == 1);
        match kill {
            true => {
                first.signal("-KILL");
                first.wait();
            }
            false => assert!(first.end().success()),
        }
        assert_eq!(text(&gateway.result(&id)), "slept");
        assert!(gateway.end().success());
        until("the server has ended", || bench.server_process().is_none());
        bench.settled();
        fs::remove_file(bench.server("odd").join("got")).unwrap();
    }
    assert_eq!((bench.outcomes().len(), recovered(&bench)), (2, vec![]));
}

/// Two calls that are the same but for their ids are two calls.
#[test]
fn the_same_call_once_more_is_another_call() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    for _ in 0..2 {
        assert_eq!(text(&gateway.call("append", json!({"text": "same"}))), "written");
    }
    assert!(gateway.end().success());
    let written = std::fs::read_to_string(bench.server("odd").join("written")).unwrap();
    assert_eq!((written.as_str(), bench.outcomes().len()), ("same\nsame\n", 2));
    bench.settled();
}
