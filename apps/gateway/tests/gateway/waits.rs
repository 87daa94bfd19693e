//! Calls that wait for a person: waited for, told of, given up, and asked in the client's window.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use syscap::Signer;
use syscap::format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, Body, ControlBody, Reason, Role, Seq,
};
use syscap::prelude::*;

use crate::gateway::bench::{Bench, GatewayProcess, refusal, text, until};

/// A gateway before whose tools the policy asks.
pub(crate) fn gateway(bench: &Bench, more: &[&str]) -> GatewayProcess {
    let server = format!("server=odd:{}", bench.server("odd").display());
    let mut words = vec![server.as_str()];
    words.extend(more);
    bench.start(&words)
}

/// The record by which the newest call waits, once one does.
pub(crate) fn waits(bench: &Bench, count: usize) -> Seq {
    until("it waits", || bench.count("Ask") == count);
    let asks = bench.records().into_iter().filter(|one| matches!(one.body, Body::Ask(_)));
    asks.last().unwrap().seq
}

pub(crate) fn answer(bench: &Bench, ask: Seq, answer: ApprovalAnswer) {
    // The gateway holds the home: answered as the operator's command does.
    let log = Options::new().inspect(bench.home()).unwrap();
    let keys = syscap::FileKeys::open(&syscap::Home::at(bench.home()).keys()).unwrap();
    let role = Role::Approver;
    let key = keys.public_key(role).unwrap();
    let body = log.answer(ask, answer, ApprovalChannel::Command, None).unwrap();
    let control = log.sign(&body, &key, |message| keys.sign(role, message)).unwrap();
    let beside = Runtime::connect(bench.home()).unwrap();
    beside.submit(ApprovalBody::KIND, control).unwrap();
    beside.close().unwrap();
}

/// The answers on record: what was said, and by which means.
fn answers(bench: &Bench) -> Vec<(ApprovalAnswer, ApprovalChannel)> {
    let of = |body| match body {
        Body::Approval(event) => ApprovalBody::from_bytes(&event.control.body).ok(),
        _ => None,
    };
    let all = bench.records().into_iter().filter_map(|record| of(record.body));
    all.map(|body| (body.answer, body.means)).collect()
}

pub(crate) fn begin(gateway: &mut GatewayProcess, text: &str) -> Value {
    let id = gateway.id();
    let params = json!({"name": "echo", "arguments": {"text": text},
        "_meta": {"progressToken": "p"}});
    gateway.send(&id, "tools/call", params);
    id
}

pub(crate) fn calls(bench: &Bench) -> usize {
    bench.got_method("odd", "tools/call")
}

#[test]
fn a_call_that_is_approved_while_it_waits_runs() {
    for attached in [false, true] {
        let bench = Bench::new();
        // Where another process holds the home it is waited for by the log.
        let holder = attached.then(|| Options::new().open(bench.home()).unwrap());
        let mut gateway = gateway(&bench, &["wait=60000"]).session();
        let id = begin(&mut gateway, "a");
        let ask = waits(&bench, 1);
        let told = gateway.hears("notifications/progress");
        assert_eq!(told["params"]["progressToken"], "p");
        let command = format!("syscap approvals approve HOME {ask}");
        assert!(told["params"]["message"].as_str().unwrap().contains(&command), "{told}");
        assert!(!gateway.has_answer(&id, Duration::from_millis(300)));
        assert_eq!(calls(&bench), 0);
        answer(&bench, ask, ApprovalAnswer::Once);
        assert!(text(&gateway.result(&id)).contains("\"a\""));
        assert_eq!(calls(&bench), 1);
        // A no is told with its reason, and nothing runs.
        let id = begin(&mut gateway, "b");
        answer(&bench, waits(&bench, 2), ApprovalAnswer::Deny);
        let refused = gateway.result(&id);
        assert_eq!(refusal(&refused)["code"], Reason::ApprovalDenied.code(), "{refused}");
        assert_eq!(calls(&bench), 1);
        assert!(gateway.end().success());
        drop(holder);
        bench.settled();
    }
}

#[test]
fn a_wait_ends_with_how_to_take_it_up() {
    let bench = Bench::new();
    let mut gateway = gateway(&bench, &["wait=600"]).session();
    let id = begin(&mut gateway, "a");
    let refused = gateway.result(&id);
    let told = refusal(&refused);
    assert_eq!(told["code"], Reason::Asked.code());
    let ask = waits(&bench, 1);
    let next = told["next"].as_str().unwrap();
    let command = format!("syscap approvals approve HOME {ask};");
    assert!(next.contains(&command) && next.contains("same call again"), "{next}");
    // Approved later, the same call goes on at once, and once.
    answer(&bench, ask, ApprovalAnswer::Once);
    let id = begin(&mut gateway, "a");
    assert!(text(&gateway.result(&id)).contains("\"a\""));
    assert_eq!((calls(&bench), bench.count("Ask")), (1, 1));
    assert!(gateway.end().success());
    bench.settled();
}

/// Who gives a call up waits no more, and holds up nobody; the question stays for the operator.
#[test]
fn a_wait_that_is_cancelled_leaves_the_question() {
    let bench = Bench::new();
    let mut gateway = gateway(&bench, &["wait=60000", "limit=concurrent:1"]).session();
    let id = begin(&mut gateway, "a");
    let ask = waits(&bench, 1);
    // What waits takes no turn of another call.
    let read = gateway.request("resources/read", json!({"uri": "odd://any"}));
    assert!(read.get("result").is_some(), "{read}");
    gateway.notify("notifications/cancelled", json!({"requestId": id}));
    let id = begin(&mut gateway, "a");
    answer(&bench, ask, ApprovalAnswer::Once);
    assert!(text(&gateway.result(&id)).contains("\"a\""));
    assert_eq!((calls(&bench), bench.count("Ask")), (1, 1));
    assert!(gateway.end().success());
    bench.settled();
}

/// The end of the gateway is not waited for.
#[test]
fn a_gateway_that_ends_waits_for_nobody() {
    let bench = Bench::new();
    let mut gateway = gateway(&bench, &["wait=600000"]).session();
    begin(&mut gateway, "a");
    waits(&bench, 1);
    assert!(gateway.end().success());
    assert_eq!(calls(&bench), 0);
    bench.settled();
}

/// A home in whose policy a client's window counts, and what elevated approvals need.
fn windowed(means: &[&str]) -> Bench {
    let bench = Bench::new();
    let rt = Options::new().open(bench.home()).unwrap();
    let standard = syscap::policy::Preset::Standard.document();
    let mut document: Value = serde_json::from_str(standard).unwrap();
    if !means.is_empty() {
        document["params"]["client_means"] = json!(means);
    }
    let log = Options::new().inspect(bench.home()).unwrap();
    let approver = log.kernel().roles().set(Role::Approver).unwrap().keys().next().unwrap();
    document["params"]["elevated"] = json!({"keys": [approver.to_string()]});
    let policy = rt.read_policy(document.to_string().as_bytes()).unwrap();
    rt.set_policy(policy).unwrap();
    rt.close().unwrap();
    bench
}

fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn say(gateway: &mut GatewayProcess, asked: &Value, result: &Value) {
    gateway.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string());
}

#[test]
fn a_clients_window_counts_where_the_policy_says_so() {
    let bench = windowed(&["elicitation"]);
    let mut gateway = gateway(&bench, &["wait=60000"]).able(forms()).session();
    let id = begin(&mut gateway, "a\n[odd] harmless\u{202e}");
    let asked = gateway.hears("elicitation/create");
    let shown = asked["params"]["message"].as_str().unwrap();
    assert!(shown.split('\n').all(|line| line.starts_with("[syscap] ")), "{shown}");
    assert!(shown.contains("odd.echo") && shown.contains("\\u202e"), "{shown}");
    say(&mut gateway, &asked, &json!({"action": "accept", "content": {"approve": true}}));
    assert!(text(&gateway.result(&id)).contains("harmless"));
    let id = begin(&mut gateway, "b");
    let asked = gateway.hears("elicitation/create");
    say(&mut gateway, &asked, &json!({"action": "decline"}));
    assert_eq!(refusal(&gateway.result(&id))["code"], Reason::ApprovalDenied.code());
    // A box that was not ticked is no answer.
    let id = begin(&mut gateway, "c");
    let asked = gateway.hears("elicitation/create");
    say(&mut gateway, &asked, &json!({"action": "accept", "content": {"approve": false}}));
    assert!(!gateway.has_answer(&id, Duration::from_millis(600)));
    let means = ApprovalChannel::Elicitation;
    assert_eq!(answers(&bench), [(ApprovalAnswer::Once, means), (ApprovalAnswer::Deny, means)]);
    assert_eq!(calls(&bench), 1);
    assert!(gateway.end().success());
    bench.settled();
}

#[test]
fn a_clients_window_is_not_asked_where_nothing_says_so() {
    // Not by the policy; not for what needs an elevated approval; not of another means.
    for (means, class) in [
        (&[][..], "class=external_write=echo"),
        (&["elicitation"], "class=irreversible=echo"),
        (&["client_prompt"], "class=external_write=echo"),
    ] {
        let bench = windowed(means);
        let mut gateway = gateway(&bench, &["wait=1500", class]).able(forms()).session();
        let id = begin(&mut gateway, "a");
        let refused = gateway.result(&id);
        assert_eq!(refusal(&refused)["code"], Reason::Asked.code(), "{refused}");
        assert!(!gateway.unasked.iter().any(|said| said["method"] == "elicitation/create"));
        let ask = waits(&bench, 1);
        let rt = Runtime::connect(bench.home()).unwrap();
        let (answer, means) = (ApprovalAnswer::Once, ApprovalChannel::Elicitation);
        let given = syscap::approvals::answer_in_client(&bench.home(), &rt, ask, answer, means);
        assert!(matches!(&given, Err(Error::Refused(why)) if why.reason() == Reason::BadControl));
        rt.close().unwrap();
        assert_eq!((answers(&bench).len(), calls(&bench)), (0, 0));
        assert!(gateway.end().success());
        bench.settled();
    }
}

/// A window that is still open when the operator has answered is taken back.
#[test]
fn a_window_is_taken_back_where_the_operator_answers() {
    let bench = windowed(&["elicitation"]);
    let mut gateway = gateway(&bench, &["wait=60000"]).able(forms()).session();
    let id = begin(&mut gateway, "a");
    let asked = gateway.hears("elicitation/create");
    let ask = waits(&bench, 1);
    answer(&bench, ask, ApprovalAnswer::Once);
    let told = gateway.hears("notifications/cancelled");
    assert_eq!(told["params"]["requestId"], asked["id"]);
    assert!(text(&gateway.result(&id)).contains('a'));
    assert!(gateway.end().success());
    bench.settled();
}

/// What a person can't be shown whole is not put before them.
#[test]
fn overlong_call_is_not_asked_in_a_window() {
    let bench = windowed(&["elicitation"]);
    let mut gateway = gateway(&bench, &["wait=1500"]).able(forms()).session();
    let id = begin(&mut gateway, &"x".repeat(5_000));
    assert_eq!(refusal(&gateway.result(&id))["code"], Reason::Asked.code());
    assert!(!gateway.unasked.iter().any(|said| said["method"] == "elicitation/create"));
    assert!(gateway.end().success());
    assert!(fs::exists(bench.home()).unwrap());
    bench.settled();
}
