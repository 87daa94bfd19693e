//! Both wires of the protocol, on either side.

use std::time::Duration;

use serde_json::{Value, json};
use syscap::format::{Freeze, Reason};
use syscap::prelude::*;

use crate::gateway::bench::{Bench, GatewayProcess, NEW, refusal, text, until};

const MOMENT: Duration = Duration::from_millis(400);

fn new_server(bench: &Bench) -> String {
    format!("server=odd:{} new", bench.server("odd").display())
}

fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

/// An old server behind a new client: every result has what the newer wire wants.
#[test]
fn results_are_made_for_the_wire_that_they_go_on() {
    let bench = Bench::new();
    for server in [format!("server=odd:{}", bench.server("odd").display()), new_server(&bench)] {
        let mut gateway = bench.start(&[&server, "class=local_write=*"]).stateless();
        let found = gateway.request("server/discover", json!({}));
        let versions = found["result"]["supportedVersions"].as_array().unwrap().clone();
        assert!(versions.contains(&json!(NEW)), "{found}");
        for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
            let listed = gateway.request(method, json!({}));
            assert_eq!(listed["result"]["resultType"], "complete", "{method}: {listed}");
            assert!(listed["result"]["ttlMs"].is_u64(), "{method}: {listed}");
            assert!(listed["result"]["cacheScope"].is_string(), "{method}: {listed}");
        }
        let called = gateway.call("echo", json!({}));
        assert_eq!((text(&called), &called["resultType"]), ("{}", &json!("complete")));
        let refused = gateway.call("none", json!({}));
        assert_eq!(refused["resultType"], "complete");
        assert_eq!(refusal(&refused)["code"], Reason::UnknownTool.code());
        let malformed = gateway.request("tools/call", json!({"name": 1}));
        assert_eq!(malformed["result"]["resultType"], "complete", "{malformed}");
        let prompt = gateway.request("prompts/get", json!({"name": "greet"}));
        assert_eq!(prompt["result"]["resultType"], "complete");
        let read = gateway.request("resources/read", json!({"uri": "odd://any"}));
        assert_eq!(read["result"]["resultType"], "complete");
        assert!(read["result"]["cacheScope"].is_string());
        let none = gateway.request("resources/read", json!({"uri": "odd://none"}));
        assert_eq!(none["error"]["code"], -32602);
        assert!(gateway.end().success());
    }
    bench.settled();
}

/// A new server behind an old client: nothing of the newer wire shows.
#[test]
fn an_old_client_sees_the_old_wire() {
    let bench = Bench::new();
    let mut gateway = bench.start(&[&new_server(&bench), "class=local_write=*"]).session();
    for method in ["tools/list", "prompts/list", "resources/list"] {
        let listed = gateway.request(method, json!({}));
        assert!(listed["result"].get("resultType").is_none(), "{method}: {listed}");
    }
    let called = gateway.call("echo", json!({}));
    assert!(called.get("resultType").is_none(), "{called}");
    assert_eq!(text(&called), "{}");
    let malformed = gateway.request("tools/call", json!({"name": 1}));
    assert!(malformed["result"].get("resultType").is_none(), "{malformed}");
    assert!(gateway.end().success());
    bench.settled();
}

/// On the older wire a server's question goes to a client that can be asked, and to no other.
#[test]
fn questions_go_to_who_can_be_asked() {
    let bench = Bench::new();
    let allow = "allow=odd:elicitation";
    let mut gateway = bench.gateway(&[allow]).able(forms()).session();
    let id = gateway.begin("elicit", json!({}));
    let asked = gateway.hears("elicitation/create");
    assert!(asked["params"]["message"].as_str().unwrap().ends_with("\n[odd] what?"), "{asked}");
    let answer = json!({"action": "accept", "content": {"a": "this"}});
    gateway.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}).to_string());
    assert!(text(&gateway.result(&id)).contains("this"));
    assert!(gateway.end().success());
    for (able, new) in [(json!({}), false), (forms(), true), (json!({}), true)] {
        let gateway = bench.gateway(&[allow]).able(able);
        let mut gateway = if new { gateway.stateless() } else { gateway.session() };
        let refused = gateway.call("elicit", json!({}));
        assert!(text(&refused).contains("-32601"), "{refused}");
        assert!(gateway.unasked.is_empty(), "{:?}", gateway.unasked);
        assert!(gateway.end().success());
    }
    let told: Vec<String> =
        bench.got("odd").into_iter().filter(|line| line.contains("\"initialize\"")).collect();
    assert!(told[0].contains("elicitation"), "{}", told[0]);
    for line in &told[1..] {
        assert!(!line.contains("elicitation"), "{line}");
    }
    bench.settled();
}

/// On the newer wire a server's request for input is its result, and the answer comes with the
/// next call; it is on record that it did.
#[test]
fn requests_for_input_pass_through() {
    let bench = Bench::new();
    let server = new_server(&bench);
    let start = || bench.start(&[&server, "class=local_write=*", "allow=odd:elicitation"]);
    let mut gateway = start().able(forms()).stateless();
    let asked = gateway.call("needs", json!({}));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(asked["requestState"], "state");
    let id = gateway.id();
    let responses = json!({"q": {"action": "accept", "content": {"a": "that"}}});
    gateway.send(
        &id,
        "tools/call",
        json!({"name": "needs", "arguments": {},
        "inputResponses": responses, "requestState": asked["requestState"]}),
    );
    let result = gateway.result(&id);
    assert!(text(&result).contains("that") && text(&result).contains("state"), "{result}");
    assert!(gateway.end().success());
    // Who has not said that it can be asked is not.
    let mut gateway = start().stateless();
    let unable = gateway.call("needs", json!({}));
    assert_eq!((&unable["resultType"], &unable["isError"]), (&json!("complete"), &json!(true)));
    assert!(text(&unable).contains("can't be asked"), "{unable}");
    assert!(gateway.end().success());
    bench.settled();
}

/// An old client is asked on its own wire, and the call goes on with its answer.
#[test]
fn requests_for_input_fall_back_for_old_clients() {
    let bench = Bench::new();
    let server = new_server(&bench);
    let start = || bench.start(&[&server, "class=local_write=*", "allow=odd:elicitation"]);
    let mut gateway = start().able(forms()).session();
    let id = gateway.begin("needs", json!({}));
    let asked = gateway.hears("elicitation/create");
    let answer = json!({"action": "accept", "content": {"a": "old"}});
    gateway.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}).to_string());
    let result = gateway.result(&id);
    assert!(text(&result).contains("old"), "{result}");
    assert!(gateway.end().success());
    // The call, and the question in it.
    assert_eq!(bench.outcomes().len(), 2);
    let mut gateway = start().session();
    let unable = gateway.call("needs", json!({}));
    assert_eq!(unable["isError"], true);
    assert!(text(&unable).contains("can't be asked"), "{unable}");
    assert!(gateway.end().success());
    bench.settled();
}

/// A refusal of a tool with an output schema is text, and never structured content.
#[test]
fn refusals_never_pretend_to_be_structured() {
    let bench = Bench::new();
    let server = format!("server=odd:{}", bench.server("odd").display());
    for new in [false, true] {
        let gateway = bench.start(&[&server, "class=irreversible=structured"]);
        let mut gateway = if new { gateway.stateless() } else { gateway.session() };
        let listed = gateway.request("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        let tool = tools.iter().find(|tool| tool["name"] == "structured").unwrap();
        assert!(tool.get("outputSchema").is_some());
        let refused = gateway.call("structured", json!({}));
        assert_eq!(refusal(&refused)["code"], Reason::Asked.code());
        assert!(text(&refused).contains("asked"));
        assert!(gateway.end().success());
    }
}

/// A subscription hears what it asked for, under its own name.
#[test]
fn subscriptions_hear_of_changes() {
    let bench = Bench::new();
    for server in [format!("server=odd:{}", bench.server("odd").display()), new_server(&bench)] {
        let mut gateway = bench.start(&[&server, "class=local_write=*"]).stateless();
        gateway.request("tools/list", json!({}));
        let id = gateway.id();
        let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": ["odd://any"]});
        gateway.send(&id, "subscriptions/listen", json!({"notifications": wanted}));
        let acknowledged = gateway.hears("notifications/subscriptions/acknowledged");
        assert_eq!(acknowledged["params"]["notifications"], wanted, "{acknowledged}");
        changes(&mut gateway, &id, server.len());
        gateway.notify("notifications/cancelled", json!({"requestId": id}));
        assert!(gateway.end().success());
    }
    bench.settled();
}

fn changes(gateway: &mut GatewayProcess, id: &Value, n: usize) {
    let tools = json!([{"name": format!("n{n}"), "inputSchema": {"type": "object"}}]).to_string();
    gateway.call("change", json!({"text": tools}));
    let changed = gateway.hears("notifications/tools/list_changed");
    let meta = &changed["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], *id, "{changed}");
}

/// A subscription that was refused joined nothing, so it takes nothing with it when it ends: not
/// what another has joined since.
#[test]
fn a_refused_subscription_leaves_anothers_alone() {
    let bench = Bench::new();
    let server = format!("server=odd:{}", bench.server("odd").display());
    let mut gateway = bench.start(&[&server, "class=local_write=*"]).stateless();
    gateway.request("tools/list", json!({}));
    let beside = Runtime::connect(bench.home()).unwrap();
    let listen = |gateway: &mut GatewayProcess| {
        let id = gateway.id();
        let wanted = json!({"notifications": {"resourceSubscriptions": ["odd://any"]}});
        gateway.send(&id, "subscriptions/listen", wanted);
        gateway.hears("notifications/subscriptions/acknowledged");
        id
    };
    let refusals = || bench.count("Refusal");
    let before = refusals();
    beside.freeze(&Freeze::all()).unwrap();
    let refused = listen(&mut gateway);
    until("it is refused", || refusals() > before);
    beside.freeze(&Freeze::all().thaw()).unwrap();
    let joined = listen(&mut gateway);
    assert_eq!(gateway.hears("notifications/resources/updated")["params"]["uri"], "odd://any");
    // Its join is noted once its outcome is on record.
    until("it has joined", || bench.outcomes().len() == 1);
    gateway.has_answer(&joined, MOMENT);
    let ends = |gateway: &mut GatewayProcess, id: &Value| {
        gateway.notify("notifications/cancelled", json!({"requestId": id}));
        gateway.has_answer(id, MOMENT)
    };
    ends(&mut gateway, &refused);
    assert_eq!(bench.got_method("odd", "resources/unsubscribe"), 0);
    ends(&mut gateway, &joined);
    until("it is left", || bench.got_method("odd", "resources/unsubscribe") == 1);
    assert_eq!(bench.got_method("odd", "resources/subscribe"), 1);
    beside.close().unwrap();
    assert!(gateway.end().success());
    bench.settled();
}
