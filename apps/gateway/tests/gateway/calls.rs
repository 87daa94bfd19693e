//! What goes through, what is refused, and what stands on record of it.

use std::time::Duration;

use serde_json::json;
use syscap::format::{Body, Label, Reason, TxOutcome};

use crate::gateway::bench::{Bench, refusal, text};

/// What the client sends arrives, what the server answers comes back, and both are on record.
#[test]
fn calls_go_through_and_are_on_record() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let args = json!({"text": "hello", "more": {"$ref": {"record": 1, "path": []}}, "n": 1.5});
    let result = gateway.call("echo", args.clone());
    let echoed: serde_json::Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(echoed, args);
    let structured = gateway.call("structured", json!({}));
    assert_eq!(structured["structuredContent"], json!({"n": 1.5}));
    assert!(gateway.end().success());
    let outcomes = bench.outcomes();
    assert_eq!(outcomes.len(), 2);
    assert!(outcomes.iter().all(|outcome| outcome.tx == TxOutcome::Committed));
    assert!(outcomes.iter().all(|outcome| outcome.label == Label::UNTRUSTED));
    bench.settled();
}

/// Nothing reaches the server that the kernel did not let through.
#[test]
fn refused_calls_have_no_effect_and_a_record() {
    let bench = Bench::new();
    let server = format!("server=odd:{}", bench.server("odd").display());
    // Not classed: an external write, of which the policy wants to be asked.
    let mut gateway = bench.start(&[&server, "class=local_write=echo"]).session();
    let asked = gateway.call("touch", json!({"text": "made"}));
    assert_eq!(refusal(&asked)["code"], Reason::Asked.code());
    let unknown = gateway.call("no-such-tool", json!({}));
    assert_eq!(refusal(&unknown)["code"], Reason::UnknownTool.code());
    assert_eq!(refusal(&unknown)["got"], "no-such-tool");
    let bad = gateway.call("echo", json!({"text": 5}));
    assert_eq!(refusal(&bad)["code"], Reason::BadArgument.code());
    assert_eq!(refusal(&bad)["field"], "text");
    let missing = gateway.request("tools/call", json!({"arguments": {}}));
    assert_eq!(refusal(&missing["result"])["code"], Reason::BadField.code());
    let list = gateway.request("tools/call", json!({"name": "echo", "arguments": [1]}));
    assert_eq!(refusal(&list["result"])["code"], Reason::BadField.code());
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let deep = gateway.call("echo", json!({"deep": deep}));
    assert_eq!(refusal(&deep)["code"], Reason::TooDeep.code());
    let record = refusal(&unknown)["record"].as_u64().unwrap();
    assert!(gateway.end().success());
    assert_eq!(bench.got_method("odd", "tools/call"), 0);
    assert!(!bench.server("odd").join("made").exists());
    let reasons: Vec<Reason> = bench.refusals().iter().map(|refusal| refusal.reason).collect();
    // What was asked about waits, in a record of its own.
    assert_eq!(reasons.len(), 5, "{reasons:?}");
    let at = bench.records().into_iter().find(|r| r.seq.get() == record).unwrap();
    assert!(matches!(at.body, Body::Refusal(_)));
    bench.settled();
}

/// A replayed id gets the first answer, and nothing runs again; also while the first runs.
#[test]
fn a_replayed_id_is_one_call() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let call = json!({"name": "echo", "arguments": {"text": "once"}});
    let id = json!("the same id");
    gateway.send(&id, "tools/call", call.clone());
    let first = gateway.result(&id);
    gateway.send(&id, "tools/call", call);
    assert_eq!(gateway.result(&id), first);
    // The same id for another call is no replay.
    gateway.send(&id, "tools/call", json!({"name": "echo", "arguments": {"text": "other"}}));
    let other = gateway.result(&id);
    assert_eq!(refusal(&other)["code"], Reason::KeyReused.code());
    let id = json!(4_000);
    let slow = json!({"name": "slow", "arguments": {"count": 300}});
    for _ in 0..3 {
        gateway.send(&id, "tools/call", slow.clone());
    }
    assert_eq!(text(&gateway.result(&id)), "slept");
    assert!(gateway.end().success());
    assert_eq!(bench.got_method("odd", "tools/call"), 2);
    bench.settled();
}

/// What a server calls an error is delivered whole, and is a failure on record; what became of the
/// effect is not known.
#[test]
fn errors_of_servers_are_failures_in_their_own_words() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let fails = gateway.call("fails", json!({}));
    assert_eq!((text(&fails), &fails["isError"]), ("it failed", &json!(true)));
    let said = &fails["_meta"]["dev.syscap/failure"];
    assert_eq!((&said["reason"], &said["retry"]), (&json!("tool_failed"), &json!("ask")));
    // All else is as the server has it.
    let mut own = fails.clone();
    own.as_object_mut().unwrap().remove("_meta");
    assert_eq!(own, json!({"content": [{"type": "text", "text": "it failed"}], "isError": true}));
    // What it says as an error of the protocol comes as that, and is on record as its result.
    let refuses = gateway.request("tools/call", json!({"name": "refuses"}));
    assert_eq!(
        refuses["error"],
        json!({"code": -32602, "message": "bad arguments",
        "data": {"of": [1]}})
    );
    for tool in ["odd", "deep"] {
        assert!(refusal(&gateway.call(tool, json!({})))["code"].is_u64(), "{tool}");
    }
    assert!(gateway.end().success());
    let outcomes = bench.outcomes();
    let failed = (Some(Reason::ToolFailed), TxOutcome::Unknown);
    assert_eq!([0, 1].map(|at| (outcomes[at].reason, outcomes[at].tx)), [failed, failed]);
    assert_eq!(outcomes[2].reason, Some(Reason::Failed));
    assert_eq!(outcomes[3].reason, Some(Reason::TooDeep));
    bench.settled();
}

/// Reading classes change nothing, also where a call goes wrong.
#[test]
fn reads_are_no_operation() {
    let bench = Bench::new();
    let server = format!("server=odd:{}", bench.server("odd").display());
    let mut gateway = bench.start(&[&server, "class=external_read=*"]).session();
    gateway.call("echo", json!({}));
    gateway.call("fails", json!({}));
    assert!(gateway.end().success());
    assert!(bench.outcomes().iter().all(|outcome| outcome.tx == TxOutcome::NoOp));
    bench.settled();
}

/// A call that is given up is cancelled at the server, recorded, and not answered.
#[test]
fn a_cancelled_call_ends_recorded() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let id = gateway.begin("hang", json!({}));
    crate::gateway::bench::until("the call is out", || bench.got_method("odd", "tools/call") == 1);
    gateway.notify("notifications/cancelled", json!({"requestId": id, "reason": "enough"}));
    crate::gateway::bench::until("the server is told", || {
        bench.got_method("odd", "notifications/cancelled") == 1
    });
    assert!(!gateway.has_answer(&id, Duration::from_millis(300)));
    assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
    assert!(gateway.end().success());
    let outcomes = bench.outcomes();
    assert_eq!(outcomes[0].reason, Some(Reason::Cancelled));
    assert_eq!(outcomes[0].tx, TxOutcome::Unknown);
    bench.settled();
}

/// Progress comes under the client's token, in order and before the answer.
#[test]
fn progress_comes_in_order_before_the_answer() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    // So many that the answer would overtake them if nobody waited.
    for round in 0..3 {
        let id = gateway.id();
        let token = format!("mine {round}");
        let call = json!({"name": "progress", "arguments": {"count": 800},
            "_meta": {"progressToken": token}});
        gateway.send(&id, "tools/call", call);
        assert_eq!(text(&gateway.result(&id)), "said");
        let told = std::mem::take(&mut gateway.unasked).into_iter();
        let told = told.filter(|said| said["method"] == "notifications/progress");
        let said: Vec<f64> = told
            .map(|said| {
                assert_eq!(said["params"]["progressToken"], token);
                said["params"]["progress"].as_f64().unwrap()
            })
            .collect();
        assert_eq!(said, (1..=800).map(f64::from).collect::<Vec<f64>>());
    }
    // Who names no token hears nothing.
    gateway.call("progress", json!({"count": 5}));
    assert!(gateway.unasked.is_empty(), "{:?}", gateway.unasked);
    assert!(gateway.end().success());
}

/// The client's trace stands in the record and goes on to the server.
#[test]
fn traces_are_recorded_and_passed_on() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let id = gateway.id();
    let call = json!({"name": "echo", "arguments": {},
        "_meta": {"traceparent": trace, "x/secret": "stays"}});
    gateway.send(&id, "tools/call", call);
    gateway.result(&id);
    assert!(gateway.end().success());
    let got = bench.got("odd");
    let call = got.iter().find(|line| line.contains("tools/call")).unwrap();
    assert!(call.contains(trace) && !call.contains("stays"), "{call}");
    let outcomes = bench.outcomes();
    let provenance = outcomes[0].call.provenance.as_ref().unwrap();
    assert_eq!(provenance.trace.as_deref(), Some(trace));
}

/// A call that has not the form of one, or says what can't be recorded, refers to nothing either:
/// what looks like a reference arrives as it was sent, or not at all, and a request that comes
/// twice is made once.
#[test]
fn a_call_of_another_form_refers_to_nothing() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    gateway.call("echo", json!({"text": "secret"}));
    let record = bench.records().into_iter().find_map(|record| match record.body {
        Body::Outcome(_) => Some(record.seq.get()),
        _ => None,
    });
    let reference = json!({"$ref": {"record": record.unwrap(), "path": []}});
    let args = json!({"more": reference, "bytes": {"$bytes": "AAE="}});
    let deep = (0..70).fold(json!(1), |inner, _| json!({"x": inner}));
    let input = json!({"a": {"action": "accept", "content": deep}});
    let cases = [json!({"requestState": 7}), json!({"inputResponses": input})];
    for more in &cases {
        let mut params = json!({"name": "echo", "arguments": args});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let id = gateway.id();
        for _ in 0..2 {
            gateway.send(&id, "tools/call", params.clone());
            let result = gateway.result(&id);
            let echoed: serde_json::Value = serde_json::from_str(text(&result)).unwrap();
            assert_eq!(echoed, args, "{more}");
        }
    }
    assert!(gateway.end().success());
    let calls = u64::try_from(bench.got_method("odd", "tools/call")).unwrap();
    assert_eq!(calls, 1 + u64::try_from(cases.len()).unwrap());
    bench.settled();
}
