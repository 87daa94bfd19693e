//! Several servers, prompts and resources, several gateways.

use serde_json::json;
use syscap::format::TxOutcome;

use crate::gateway::bench::{Bench, refusal, text};

fn two(bench: &Bench) -> [String; 2] {
    std::fs::create_dir_all(bench.server("even")).unwrap();
    ["odd", "even"].map(|name| format!("server={name}:{}", bench.server(name).display()))
}

/// With several servers names have prefixes, and each call goes to its own.
#[test]
fn several_servers_have_prefixes() {
    let bench = Bench::new();
    let [odd, even] = two(&bench);
    let mut gateway = bench.start(&[&odd, &even, "class=local_write=*"]).session();
    let names = gateway.names();
    assert!(names.contains(&String::from("odd_echo")));
    assert!(names.contains(&String::from("even_echo")));
    assert!(names.is_sorted());
    assert_ne!(gateway.call("odd_touch", json!({"text": "a"}))["isError"], true);
    assert_ne!(gateway.call("even_touch", json!({"text": "b"}))["isError"], true);
    assert!(refusal(&gateway.call("touch", json!({"text": "c"})))["code"].is_u64());
    assert!(bench.server("odd").join("a").exists() && bench.server("even").join("b").exists());
    // One of them dies: the other serves.
    gateway.begin("odd_die", json!({}));
    assert_eq!(text(&gateway.call("even_echo", json!({}))), "{}");
    assert!(gateway.end().success());
    bench.settled();
}

/// Prompts and resources go to the server that has them, each as a call on record.
#[test]
fn prompts_and_resources_are_calls() {
    let bench = Bench::new();
    let [odd, even] = two(&bench);
    let mut gateway = bench.start(&[&odd, &even]).session();
    let prompts = gateway.request("prompts/list", json!({}));
    assert_eq!(prompts["result"]["prompts"].as_array().unwrap().len(), 2);
    let prompt = json!({"name": "even_greet", "arguments": {"who": "you"}});
    let prompt = gateway.request("prompts/get", prompt);
    assert_eq!(prompt["result"]["messages"][0]["content"]["text"], "hi \"you\"");
    assert_eq!(bench.got_method("even", "prompts/get"), 1);
    let resources = gateway.request("resources/list", json!({}));
    let resources = resources["result"]["resources"].as_array().unwrap().clone();
    assert_eq!(resources.len(), 2);
    for resource in &resources {
        let read = gateway.request("resources/read", json!({"uri": resource["uri"]}));
        assert_eq!(read["result"]["contents"][0]["text"], "content");
    }
    assert_eq!(bench.got_method("odd", "resources/read"), 1);
    assert_eq!(bench.got_method("even", "resources/read"), 1);
    let templated = gateway.request("resources/read", json!({"uri": "odd://any"}));
    assert_eq!(templated["result"]["contents"][0]["text"], "content");
    let none = gateway.request("resources/read", json!({"uri": "odd://none"}));
    assert_eq!(none["error"]["code"], -32002);
    assert_eq!(bench.outcomes().len(), 1 + 2 + 2 + 1 + 2);
    let templates = gateway.request("resources/templates/list", json!({}));
    assert_eq!(templates["result"]["resourceTemplates"].as_array().unwrap().len(), 2);
    let completed = gateway.request(
        "completion/complete",
        json!({
        "ref": {"type": "ref/prompt", "name": "odd_greet"},
        "argument": {"name": "who", "value": "o"}}),
    );
    assert_eq!(completed["result"]["completion"]["values"], json!(["one", "two"]));
    let uri = resources[0]["uri"].clone();
    let subscribed = gateway.request("resources/subscribe", json!({"uri": uri}));
    assert!(subscribed.get("error").is_none(), "{subscribed}");
    assert_eq!(gateway.hears("notifications/resources/updated")["params"]["uri"], uri);
    gateway.request("resources/unsubscribe", json!({"uri": uri}));
    let level = gateway.request("logging/setLevel", json!({"level": "info"}));
    assert!(level.get("error").is_none(), "{level}");
    assert_eq!(gateway.hears("notifications/message")["params"]["data"], "set");
    assert_eq!(gateway.request("ping", json!({}))["result"], json!({}));
    assert!(gateway.end().success());
    let outcomes = bench.outcomes();
    assert_eq!(outcomes.len(), 8 + 2 + 1 + 1);
    assert!(outcomes.iter().all(|outcome| outcome.tx == TxOutcome::NoOp));
    bench.settled();
}

/// Both can be switched off: then nothing of them reaches a server.
#[test]
fn prompts_and_resources_can_be_switched_off() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&["prompts=no", "resources=no"]);
    let begun = gateway.request(
        "initialize",
        json!({"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}),
    );
    assert!(begun["result"]["capabilities"].get("prompts").is_none(), "{begun}");
    assert!(begun["result"]["capabilities"].get("resources").is_none(), "{begun}");
    assert!(gateway.request("prompts/get", json!({"name": "greet"})).get("error").is_some());
    let read = gateway.request("resources/read", json!({"uri": "odd://any"}));
    assert!(read.get("error").is_some());
    let completed = gateway.request(
        "completion/complete",
        json!({
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "who", "value": "secret"}}),
    );
    assert!(completed.get("error").is_some(), "{completed}");
    let subscribed = gateway.request("resources/subscribe", json!({"uri": "odd://any"}));
    assert!(subscribed.get("error").is_some(), "{subscribed}");
    assert!(gateway.end().success());
    for method in ["prompts/get", "resources/read", "completion/complete", "resources/subscribe"] {
        assert_eq!(bench.got_method("odd", method), 0, "{method}");
    }
}

/// Two clients at once, each with a gateway of its own, on one home.
#[test]
fn two_gateways_share_a_home() {
    let bench = Bench::new();
    let [odd, even] = two(&bench);
    let mut first = bench.start(&[&odd, "class=local_write=*"]).session();
    let mut second = bench.start(&[&even, "class=local_write=*", "agent=two"]).session();
    for n in 0..20 {
        let (a, b) = (first.begin("echo", json!({"n": n})), second.begin("echo", json!({"n": n})));
        assert_ne!(first.result(&a)["isError"], true);
        assert_ne!(second.result(&b)["isError"], true);
    }
    // The holder ends; the other holds the home then, and serves on.
    assert!(first.end().success());
    assert_eq!(text(&second.call("echo", json!({"n": 7}))), "{\"n\":7}");
    assert!(second.end().success());
    assert_eq!(bench.got_method("odd", "tools/call"), 20);
    assert_eq!(bench.got_method("even", "tools/call"), 21);
    bench.settled();
}
