//! What a server asks of the client: off unless it is allowed, under its name, on record, stopped.

use std::{thread, time::Duration};

use serde_json::{Value, json};
use syscap::format::{Body, Dimension, EffectClass, Freeze, TokenId};
use syscap::prelude::*;

use crate::gateway::bench::{Bench, GatewayProcess, text, until};

const ALL: [&str; 3] = ["allow=odd:elicitation", "allow=odd:sampling", "allow=odd:roots"];

/// All that a client can be asked.
fn able() -> Value {
    json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {"listChanged": true}})
}

/// A question of each kind, and an answer to it.
fn questions() -> [(&'static str, Value, Value); 3] {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let words = json!({"type": "text", "text": "say"});
    let said =
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "so"}});
    [
        (
            "elicitation/create",
            json!({"message": "what\u{202e}?\n[bank] ok?", "requestedSchema": schema}),
            json!({"action": "accept", "content": {"a": "so"}}),
        ),
        (
            "sampling/createMessage",
            json!({"maxTokens": 9, "messages": [{"role": "user", "content": words}]}),
            said,
        ),
        ("roots/list", json!({}), json!({"roots": [{"uri": "file:///so"}]})),
    ]
}

/// Has the server ask, after so many milliseconds.
fn ask(gateway: &mut GatewayProcess, (method, params): (&str, &Value), after: u64) -> Value {
    let request = json!({"method": method, "params": params}).to_string();
    gateway.begin("elicit", json!({"text": request, "count": after}))
}

fn answer(gateway: &mut GatewayProcess, asked: &Value, result: &Value) {
    gateway.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string());
}

/// How many intents of a question there are.
fn asked(bench: &Bench, what: &str) -> usize {
    let of = |body: Body| match body {
        Body::Intent(intent) => intent.call.tool_id.is_some_and(|tool| tool.as_str() == what),
        _ => false,
    };
    bench.records().into_iter().filter(|record| of(record.body.clone())).count()
}

fn token(bench: &Bench) -> TokenId {
    Options::new().inspect(bench.home()).unwrap().view().tokens[0].id
}

#[test]
fn a_server_asks_nothing_unless_it_is_allowed() {
    let bench = Bench::new();
    for (method, params, _) in questions() {
        let mut gateway = bench.gateway(&[]).able(able()).session();
        let id = ask(&mut gateway, (method, &params), 0);
        assert!(text(&gateway.result(&id)).contains("-32601"), "{method}");
        assert!(gateway.unasked.is_empty(), "{:?}", gateway.unasked);
        assert!(gateway.said().contains("--allow odd:"), "{method}");
        assert!(gateway.end().success());
    }
    let [form, model, roots] = questions();
    // A token from before grants no question: that is said with the command that goes on.
    let mut gateway = bench.gateway(&["allow=odd:roots"]).able(able()).session();
    let id = ask(&mut gateway, (roots.0, &roots.1), 0);
    assert!(text(&gateway.result(&id)).contains("-32603"));
    assert!(gateway.said().contains("--tool odd.ask.roots"));
    assert!(gateway.unasked.is_empty() && gateway.end().success());
    // One that is allowed one thing is told of that alone, and may ask nothing else.
    let mut gateway = bench.gateway(&["allow=odd:roots", "agent=two"]).able(able()).session();
    for (method, params, _) in [form, model] {
        let id = ask(&mut gateway, (method, &params), 0);
        assert!(text(&gateway.result(&id)).contains("-32601"), "{method}");
    }
    let id = ask(&mut gateway, (roots.0, &roots.1), 0);
    let heard = gateway.hears("roots/list");
    answer(&mut gateway, &heard, &roots.2);
    assert!(text(&gateway.result(&id)).contains("file:///so"));
    gateway.notify("notifications/roots/list_changed", json!({}));
    until("it is told", || bench.got_method("odd", "notifications/roots/list_changed") == 1);
    assert!(gateway.end().success());
    let told: Vec<Value> = bench
        .got("odd")
        .iter()
        .filter(|line| line.contains("\"initialize\""))
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["params"]["capabilities"].clone())
        .collect();
    assert_eq!(told.len(), 5);
    assert!(told[..3].iter().all(|told| *told == json!({})), "{told:?}");
    assert_eq!(told[4], json!({"roots": {"listChanged": true}}));
    bench.settled();
}

/// The time in which a form waits for a person is not the tool's: a call may take less than that.
#[test]
fn a_persons_time_does_not_count() {
    let bench = Bench::new();
    let options = ["allow=odd:elicitation", "timeout=1500"];
    let mut gateway = bench.gateway(&options).able(able()).session();
    let [(method, params, said), ..] = questions();
    let id = ask(&mut gateway, (method, &params), 0);
    let asked = gateway.hears(method);
    thread::sleep(Duration::from_millis(2_500));
    answer(&mut gateway, &asked, &said);
    assert!(text(&gateway.result(&id)).contains("accept"));
    let wall = |body: &Body| match body {
        Body::Outcome(outcome) if outcome.reason.is_none() => {
            outcome.call.used.get(Dimension::WallUs)
        }
        _ => 0,
    };
    let walls: Vec<u64> = bench.records().iter().map(|record| wall(&record.body)).collect();
    assert_eq!(walls.iter().filter(|wall| **wall >= 2_500_000).count(), 1, "{walls:?}");
    assert!(gateway.end().success());
    bench.settled();
}

/// A client that still asks a person when nobody waits for the answer any more is told so.
#[test]
fn abandoned_question_is_withdrawn_from_the_client() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&["allow=odd:elicitation"]).able(able()).session();
    let [(method, params, _), ..] = questions();
    let id = ask(&mut gateway, (method, &params), 0);
    let asked = gateway.hears(method);
    gateway.notify("notifications/cancelled", json!({"requestId": id}));
    let told = gateway.hears("notifications/cancelled");
    assert_eq!(told["params"]["requestId"], asked["id"]);
    assert!(gateway.end().success());
    bench.settled();
}

/// So is one whose server did not wait for the answer, and has ended the call.
#[test]
fn question_ends_with_its_call() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&["allow=odd:elicitation"]).able(able()).session();
    let [(method, params, _), ..] = questions();
    let id = ask(&mut gateway, (method, &params), 0);
    let asked = gateway.hears(method);
    let told = gateway.hears("notifications/cancelled");
    assert_eq!(told["params"]["requestId"], asked["id"]);
    assert_eq!(text(&gateway.result(&id)), "nobody answered");
    assert!(gateway.end().success());
    bench.settled();
}

#[test]
fn a_question_bears_its_servers_name_and_is_on_record() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&ALL).able(able()).session();
    for (method, params, result) in questions() {
        let id = ask(&mut gateway, (method, &params), 0);
        let heard = gateway.hears(method);
        match method {
            "elicitation/create" => {
                let lines = heard["params"]["message"].as_str().unwrap();
                assert!(lines.split('\n').all(|line| line.starts_with("[odd] ")), "{lines}");
                assert!(lines.contains("what\\u202e?") && lines.contains("[odd] [bank] ok?"));
            }
            "sampling/createMessage" => {
                let system = heard["params"]["systemPrompt"].as_str().unwrap();
                assert!(system.starts_with("[odd] "), "{system}");
            }
            _ => {}
        }
        answer(&mut gateway, &heard, &result);
        let answered = gateway.result(&id);
        assert!(text(&answered).contains("so"), "{method}: {answered}");
    }
    assert!(gateway.end().success());
    for what in ["odd.ask.elicitation", "odd.ask.sampling", "odd.ask.roots"] {
        assert_eq!(asked(&bench, what), 1, "{what}");
    }
    let effects = bench.records().into_iter().filter_map(|record| match record.body {
        Body::Intent(intent) => Some(intent.effect),
        _ => None,
    });
    assert_eq!(effects.filter(|effect| *effect == EffectClass::ExternalRead).count(), 3);
    bench.settled();
}

/// What is frozen or revoked puts no question, and gives no answer to one that was open.
#[test]
fn a_question_stops_with_freeze_and_revoke() {
    for freeze in [true, false] {
        let bench = Bench::new();
        let mut gateway = bench.gateway(&ALL).able(able()).session();
        let [(method, params, result), ..] = questions();
        let open = ask(&mut gateway, (method, &params), 0);
        let heard = gateway.hears(method);
        // It is let through now, and will ask once all is stopped.
        let later = ask(&mut gateway, (method, &params), 1_500);
        until("it is there", || bench.got_method("odd", "tools/call") == 2);
        let beside = Runtime::connect(bench.home()).unwrap();
        if freeze {
            beside.freeze(&Freeze::all()).unwrap();
        } else {
            beside.revoke(token(&bench)).unwrap();
        }
        drop(beside);
        answer(&mut gateway, &heard, &result);
        let answered = gateway.result(&open);
        assert!(!text(&answered).contains("\"so\""), "{answered}");
        let refused = gateway.result(&later);
        assert!(text(&refused).contains("-32603"), "{refused}");
        assert!(!gateway.unasked.iter().any(|said| said["method"] == method));
        assert!(gateway.end().success());
        assert_eq!(asked(&bench, "odd.ask.elicitation"), 1);
        assert_eq!(bench.refusals().len(), 1);
        bench.settled();
    }
}

/// On the newer wire the question is a result: it bears the name too, and what is not let through
/// is not in it.
#[test]
fn a_question_in_a_result_is_governed_too() {
    let bench = Bench::new();
    let server = format!("server=odd:{} new", bench.server("odd").display());
    let words = [server.as_str(), "class=local_write=*", ALL[0]];
    let mut gateway = bench.start(&words).able(able()).stateless();
    let needed = gateway.call("needs", json!({}));
    let message = needed["inputRequests"]["q"]["params"]["message"].as_str().unwrap();
    assert!(message.split('\n').all(|line| line.starts_with("[odd] ")), "{needed}");
    assert_eq!(asked(&bench, "odd.ask.elicitation"), 1);
    assert!(gateway.end().success());
    // By a token that does not grant it, and where the operator has not allowed it.
    let rt = Options::new().open(bench.home()).unwrap();
    let narrow = rt.issue(Grant::to("agent").tools(["odd.needs"])).unwrap();
    rt.close().unwrap();
    let narrow = format!("token={narrow}");
    for words in [&[&*server, "class=local_write=*", ALL[0], &narrow][..], &words[..2]] {
        let mut gateway = bench.start(words).able(able()).stateless();
        let refused = gateway.call("needs", json!({}));
        assert_eq!(
            (&refused["resultType"], &refused["isError"]),
            (&json!("complete"), &json!(true))
        );
        assert!(gateway.end().success());
    }
    let told = bench.got("odd");
    let told = told.iter().rfind(|line| line.contains("\"tools/call\"")).unwrap();
    assert!(!told.contains("elicitation"), "{told}");
    bench.settled();
}

/// Nobody else's call asks a client in a server's name.
#[test]
fn only_the_server_asks_in_its_name() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&ALL).able(able()).session();
    gateway.names();
    let beside = Runtime::connect(bench.home()).unwrap();
    let token = beside.issue(Grant::to("other").tools(["odd.ask.elicitation"])).unwrap();
    let session = beside.session("other", token).unwrap();
    let args = syscap::args! { "message": "your password?" };
    let answer = session.call("odd.ask.elicitation", args).unwrap();
    assert!(answer.to_json().to_string().contains("only the server itself"), "{answer:?}");
    thread::sleep(Duration::from_millis(100));
    gateway.names();
    assert!(gateway.unasked.is_empty(), "{:?}", gateway.unasked);
    session.close().unwrap();
    drop(beside);
    assert!(gateway.end().success());
}
