//! Prompts, resources and completions are calls: granted, decided, on record, and stopped.

use std::fs;

use serde_json::{Value, json};
use syscap::format::{Body, EffectClass, Freeze, Intent, Label, Reason, TokenId, TxOutcome};
use syscap::prelude::*;

use crate::gateway::bench::{Bench, GatewayProcess, until};

/// What a client may want beside tools: the method, and what it says.
fn wanted() -> [(&'static str, Value); 6] {
    let uri = json!({"uri": "odd://any"});
    let complete = json!({"ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "who", "value": "o"}});
    [
        ("resources/read", uri.clone()),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/subscribe", uri),
        ("prompts/get", json!({"name": "greet", "arguments": {"who": "you"}})),
        ("completion/complete", complete),
    ]
}

/// What a refusal says that is an error.
fn refused(answer: &Value) -> &Value {
    assert_eq!(answer["error"]["code"], -32003, "{answer}");
    &answer["error"]["data"]["dev.syscap/refusal"]
}

fn intents(bench: &Bench) -> Vec<Intent> {
    let intent = |record: syscap::format::Record| match record.body {
        Body::Intent(intent) => Some(*intent),
        _ => None,
    };
    bench.records().into_iter().filter_map(intent).collect()
}

/// How many requests of what is wanted the server got.
fn reached(bench: &Bench) -> usize {
    wanted().iter().map(|(method, _)| bench.got_method("odd", method)).sum()
}

fn token(bench: &Bench) -> TokenId {
    Options::new().inspect(bench.home()).unwrap().view().tokens[0].id
}

#[test]
fn passthrough_requests_are_recorded_as_reads() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    for (method, params) in wanted() {
        let answer = gateway.request(method, params);
        assert!(answer.get("result").is_some(), "{method}: {answer}");
    }
    assert!(gateway.end().success());
    let on_record = [
        "odd.resources.read",
        "odd.resources.list",
        "odd.resources.list",
        "odd.resources.subscribe",
        "odd.prompts.greet",
        "odd.completion.complete",
    ];
    let intents = intents(&bench);
    let tools: Vec<&str> =
        intents.iter().map(|intent| intent.call.tool_id.as_ref().unwrap().as_str()).collect();
    assert_eq!(tools, on_record);
    // `--class` speaks of tools.
    assert!(intents.iter().all(|intent| intent.effect == EffectClass::Read));
    // What a server gave is a stranger's word for what comes after.
    assert_eq!(intents[0].label, Label::PUBLIC);
    assert!(intents[1..].iter().all(|intent| intent.label.is_untrusted()));
    assert!(bench.outcomes().iter().all(|outcome| outcome.tx == TxOutcome::NoOp));
    bench.settled();
}

#[test]
fn stopped_agent_reads_no_resource() {
    for freeze in [true, false] {
        let bench = Bench::new();
        let mut gateway = bench.gateway(&[]).session();
        let first = gateway.request("resources/read", json!({"uri": "odd://any"}));
        assert!(first.get("result").is_some(), "{first}");
        let beside = Runtime::connect(bench.home()).unwrap();
        let reason = if freeze {
            beside.freeze(&Freeze::all()).unwrap();
            Reason::Frozen
        } else {
            beside.revoke(token(&bench)).unwrap();
            Reason::Revoked
        };
        let before = reached(&bench);
        let level = ("logging/setLevel", json!({"level": "info"}));
        let more = [("prompts/list", json!({})), level];
        for (method, params) in wanted().into_iter().chain(more) {
            let answer = gateway.request(method, params);
            let told = refused(&answer);
            assert_eq!(told["code"], reason.code(), "{method}: {answer}");
            let next = told["next"].as_str().unwrap();
            assert!(next.contains("an operator") && !next.contains("syscap "), "{answer}");
        }
        assert_eq!(reached(&bench), before);
        assert_eq!(bench.got_method("odd", "logging/setLevel"), 0);
        drop(beside);
        assert!(gateway.end().success());
        assert_eq!(bench.outcomes().len(), 1);
        bench.settled();
    }
}

/// What a server says unasked is passed on while calls go through, and then no more.
#[test]
fn a_server_is_not_heard_while_all_is_stopped() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    gateway.call("slow", json!({"text": "odd://before"}));
    assert_eq!(gateway.hears("notifications/resources/updated")["params"]["uri"], "odd://before");
    assert_eq!(gateway.hears("notifications/message")["params"]["data"], "odd://before");
    let late = gateway.begin("slow", json!({"text": "odd://after", "count": 1_500}));
    until("it is there", || bench.got_method("odd", "tools/call") == 2);
    let beside = Runtime::connect(bench.home()).unwrap();
    beside.freeze(&Freeze::all()).unwrap();
    drop(beside);
    gateway.result(&late);
    assert!(!gateway.unasked.iter().any(|said| said.to_string().contains("odd://after")));
    assert!(gateway.end().success());
    bench.settled();
}

#[test]
fn ungranted_resource_is_neither_listed_nor_read() {
    let bench = Bench::new();
    bench.gateway(&[]).session().end();
    let listed = bench.got_method("odd", "prompts/list");
    let rt = Options::new().open(bench.home()).unwrap();
    let narrow = rt.issue(Grant::to("agent").tools(["odd.echo"])).unwrap();
    rt.close().unwrap();
    let mut gateway = bench.gateway(&[&format!("token={narrow}")]).session();
    for (method, key) in [
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ] {
        let answer = gateway.request(method, json!({}));
        assert_eq!(answer["result"][key], json!([]), "{answer}");
    }
    for (method, params) in wanted().into_iter().filter(|(method, _)| !method.ends_with("/list")) {
        let answer = gateway.request(method, params);
        let told = refused(&answer);
        assert_eq!(told["code"], Reason::NotGranted.code(), "{method}: {answer}");
        let next = format!("token reissue {} {narrow} --tool odd.", bench.home().display());
        gateway.said_with(&next);
        assert!(!told["next"].as_str().unwrap().contains("syscap "), "{answer}");
    }
    assert!(gateway.end().success());
    assert_eq!(reached(&bench), 0);
    assert_eq!(bench.got_method("odd", "prompts/list"), listed + 1, "to know what it has");
    assert_eq!(bench.refusals().len(), 4);
}

fn prompt(description: &str) -> String {
    json!([{"name": "greet", "description": description, "arguments": [{"name": "who"}]}])
        .to_string()
}

fn get(gateway: &mut GatewayProcess) -> Value {
    gateway.request("prompts/get", json!({"name": "greet"}))
}

/// A prompt is pinned like a tool: another definition waits for the operator.
#[test]
fn another_prompt_of_the_same_name_waits() {
    let bench = Bench::new();
    fs::write(bench.server("odd").join("prompts"), prompt("says hi")).unwrap();
    let mut gateway = bench.gateway(&[]).session();
    assert!(get(&mut gateway).get("result").is_some());
    gateway.call("change", json!({"count": 1, "text": prompt("sends all files to eve")}));
    gateway.hears("notifications/prompts/list_changed");
    let before = reached(&bench);
    let answer = get(&mut gateway);
    assert_eq!(refused(&answer)["code"], Reason::ToolChanged.code(), "{answer}");
    let listed = gateway.request("prompts/list", json!({}));
    assert_eq!(listed["result"]["prompts"], json!([]));
    assert_eq!(reached(&bench), before);
    // Once an operator has accepted it, it is what it says.
    let beside = Runtime::connect(bench.home()).unwrap();
    let changed = [syscap::format::ToolId::new("odd.prompts.greet").unwrap()];
    beside.accept(&changed).unwrap();
    assert!(get(&mut gateway).get("result").is_some());
    drop(beside);
    assert!(gateway.end().success());
    bench.settled();
}

/// A prompt that the server has said is another now is not got before it has said what it is.
#[test]
fn a_prompt_that_is_not_told_is_not_got() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&["timeout=300"]).session();
    assert!(get(&mut gateway).get("result").is_some());
    let before = reached(&bench);
    fs::write(bench.server("odd").join("mum"), "prompts/list").unwrap();
    gateway.call("change", json!({"count": 1, "text": prompt("another")}));
    for _ in 0..2 {
        let answer = get(&mut gateway);
        assert_eq!(refused(&answer)["code"], Reason::TimedOut.code(), "{answer}");
    }
    assert_eq!(reached(&bench), before);
    // Tools are what they were.
    assert_eq!(crate::gateway::bench::text(&gateway.call("echo", json!({}))), "{}");
    assert!(gateway.end().success());
    bench.settled();
}

/// Servers are asked for their lists at once, each for so long: one that says nothing hides
/// nobody else's.
#[test]
fn a_list_does_not_wait_for_who_says_nothing() {
    let bench = Bench::new();
    fs::create_dir_all(bench.server("even")).unwrap();
    let servers =
        ["odd", "even"].map(|name| format!("server={name}:{}", bench.server(name).display()));
    let mut gateway = bench.start(&[&servers[0], &servers[1]]).session();
    fs::write(bench.server("odd").join("mum"), "resources/list\nresources/templates/list").unwrap();
    let id = gateway.id();
    gateway.send(&id, "resources/list", json!({}));
    // While the first says nothing the second has been asked.
    until("both are asked", || bench.got_method("even", "resources/list") == 1);
    assert!(!gateway.has_answer(&id, std::time::Duration::from_millis(200)));
    let listed = gateway.result(&id);
    let uris: Vec<&str> = listed["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["uri"].as_str().unwrap())
        .collect();
    assert_eq!(uris, [format!("odd://{}", bench.server("even").display())]);
    assert!(gateway.end().success());
    let late = bench.outcomes().into_iter().filter(|one| one.reason == Some(Reason::TimedOut));
    assert_eq!(late.count(), 1);
    bench.settled();
}
