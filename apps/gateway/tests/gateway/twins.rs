//! Calls that are the same, and wait for a person at one time; and what becomes of a wait where
//! what was asked about is over.

use std::time::Duration;

use serde_json::{Value, json};
use syscap::Configured;
use syscap::format::{ApprovalAnswer, EffectClass, Reason};
use syscap::prelude::*;
use syscap::syscalls::stated::Stated;

use crate::gateway::bench::{Bench, refusal, text, until};
use crate::gateway::waits::{answer, begin, calls, gateway, waits};

const MOMENT: Duration = Duration::from_millis(700);

/// Of several, the one that has been answered.
fn answered(gateway: &mut crate::gateway::bench::GatewayProcess, ids: &[Value]) -> Vec<Value> {
    let mut ids = ids.to_vec();
    ids.retain(|id| gateway.has_answer(id, MOMENT));
    ids
}

/// An approval is for one call: of two that are the same one goes on by it, and the other asks for
/// itself, and waits for that.
#[test]
fn each_of_two_equal_calls_needs_its_own_approval() {
    for attached in [false, true] {
        let bench = Bench::new();
        let holder = attached.then(|| Options::new().open(bench.home()).unwrap());
        let mut gateway = gateway(&bench, &["wait=60000"]).session();
        let ids = [begin(&mut gateway, "a"), begin(&mut gateway, "a")];
        let first = waits(&bench, 1);
        assert_eq!(answered(&mut gateway, &ids), [Value::Null; 0]);
        assert_eq!(bench.count("Ask"), 1, "nobody is asked twice about what is the same");
        answer(&bench, first, ApprovalAnswer::Once);
        let second = waits(&bench, 2);
        let done = answered(&mut gateway, &ids);
        assert_eq!((done.len(), calls(&bench)), (1, 1));
        answer(&bench, second, ApprovalAnswer::Once);
        for id in &ids {
            assert!(text(&gateway.result(id)).contains("\"a\""));
        }
        assert_eq!((calls(&bench), bench.count("Ask")), (2, 2));
        assert!(gateway.end().success());
        drop(holder);
        bench.settled();
    }
}

/// A no is for all that wait by the same question.
#[test]
fn a_no_ends_both_of_two_calls_that_are_the_same() {
    let bench = Bench::new();
    let mut gateway = gateway(&bench, &["wait=60000"]).session();
    let ids = [begin(&mut gateway, "a"), begin(&mut gateway, "a")];
    let ask = waits(&bench, 1);
    assert_eq!(answered(&mut gateway, &ids), [Value::Null; 0]);
    answer(&bench, ask, ApprovalAnswer::Deny);
    for id in &ids {
        let refused = gateway.result(id);
        assert_eq!(refusal(&refused)["code"], Reason::ApprovalDenied.code(), "{refused}");
    }
    assert_eq!((calls(&bench), bench.count("Ask")), (0, 1));
    assert!(gateway.end().success());
    bench.settled();
}

/// What waits for a tool that has been set anew since asks anew, by the tool as it is now.
#[test]
fn a_wait_for_a_tool_that_is_set_anew_asks_anew() {
    let bench = Bench::new();
    let mut gateway = gateway(&bench, &["wait=60000"]).session();
    let id = begin(&mut gateway, "a");
    let first = waits(&bench, 1);
    let beside = Runtime::connect(bench.home()).unwrap();
    let set = |class: EffectClass| {
        let log = Options::new().inspect(bench.home()).unwrap();
        let mut manifests = log.kernel().manifests();
        let manifest = manifests.find(|one| one.tool.as_str() == "odd.echo").unwrap();
        let mut stated = Stated::of(manifest).unwrap();
        stated.class = Some(class);
        let set = vec![stated.on(manifest).unwrap()];
        beside.configure(&Configured { set, unset: Vec::new() }).unwrap();
    };
    set(EffectClass::ExternalWrite);
    let second = waits(&bench, 2);
    assert!(second > first && !gateway.has_answer(&id, MOMENT));
    answer(&bench, second, ApprovalAnswer::Once);
    assert!(text(&gateway.result(&id)).contains("\"a\""));
    // Now it needs nobody, so what waited goes on.
    let id = begin(&mut gateway, "b");
    waits(&bench, 3);
    set(EffectClass::Read);
    assert!(text(&gateway.result(&id)).contains("\"b\""));
    assert_eq!((calls(&bench), bench.count("Ask")), (2, 3));
    beside.close().unwrap();
    assert!(gateway.end().success());
    bench.settled();
}

/// What runs holds up nobody: calls that are the same run at one time, where nobody is asked.
#[test]
fn calls_that_are_the_same_run_at_one_time() {
    let bench = Bench::new();
    let mut gateway = gateway(&bench, &["class=read=*"]).session();
    let args = || json!({"text": "a"});
    let ids = [gateway.begin("hang", args()), gateway.begin("hang", args())];
    until("both run", || calls(&bench) == 2);
    assert_eq!(answered(&mut gateway, &ids), [Value::Null; 0]);
    assert_eq!(bench.count("Intent"), 2);
    assert!(gateway.end().success());
    bench.settled();
}
