//! What a client is told, and may give its model. The bench looks at each line: it holds no path of
//! the home, no token id, and no command but the one that approves a call.

use std::{collections::BTreeSet, fs, time::Duration};

use serde_json::{Value, json};
use syscap::format::{ApprovalAnswer, Freeze, Reason, Seq, TokenId, ToolId};
use syscap::prelude::*;
use syscap::syscalls::stated::{ArgumentKind, Declared, PathRoot, Stated};

use crate::gateway::bench::{Bench, GatewayProcess, refusal, until};
use crate::gateway::waits;

/// The reasons that a client was told.
#[derive(Default)]
struct Told(BTreeSet<String>);

impl Told {
    fn take(&mut self, answer: &Value) {
        let told = [&answer["result"]["_meta"], &answer["error"]["data"]];
        let reasons = told.into_iter().filter_map(|it| it["dev.syscap/refusal"]["reason"].as_str());
        self.0.extend(reasons.map(String::from));
    }

    fn call(&mut self, gateway: &mut GatewayProcess, tool: &str, args: Value) -> Value {
        let answer = gateway.request("tools/call", json!({"name": tool, "arguments": args}));
        self.take(&answer);
        answer["result"].clone()
    }

    /// All requests that are no call.
    fn others(&mut self, gateway: &mut GatewayProcess) {
        let params = json!({"uri": "odd://any", "name": "any", "level": "info",
            "ref": {"type": "ref/prompt", "name": "any"},
            "argument": {"name": "a", "value": ""}});
        for method in [
            "tools/list",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "resources/subscribe",
            "prompts/list",
            "prompts/get",
            "completion/complete",
            "logging/setLevel",
        ] {
            let answer = gateway.request(method, params.clone());
            self.take(&answer);
        }
    }
}

fn extra(description: &str) -> Value {
    let tools = json!([{"name": "extra", "description": description,
        "inputSchema": {"type": "object"}}]);
    json!({ "text": tools.to_string() })
}

fn newest(bench: &Bench) -> TokenId {
    Options::new().inspect(bench.home()).unwrap().view().tokens[0].id
}

fn beside<T>(bench: &Bench, act: impl FnOnce(&Runtime) -> T) {
    let beside = Runtime::command(bench.home()).unwrap();
    act(&beside);
    beside.close().unwrap();
}

/// Declares that an argument of `echo` is a path.
fn declare(bench: &Bench) {
    beside(bench, |beside| {
        let manifest = beside.tool(&ToolId::new("odd.echo").unwrap()).unwrap().manifest;
        let mut stated = Stated::of(&manifest).unwrap();
        let root = PathRoot::parse("docs=/srv/docs").unwrap();
        let declared = Declared::new(ArgumentKind::Path(vec![root]));
        stated.arguments.insert(Box::from("at"), declared);
        let set = vec![stated.on(&manifest).unwrap()];
        beside.configure(&syscap::Configured { set, unset: Vec::new() }).unwrap();
    });
}

/// Over all ways to be refused that a session has.
#[test]
fn client_is_told_neither_home_nor_token_nor_command() {
    let (bench, mut told) = (Bench::new(), Told::default());
    fs::write(bench.server("odd").join("tools"), extra("one")["text"].as_str().unwrap()).unwrap();
    let mut gateway = bench.gateway(&["timeout=500", "bytes=2000"]).session();
    told.others(&mut gateway);
    told.call(&mut gateway, "nothing", json!({}));
    told.call(&mut gateway, "hang", json!({}));
    told.call(&mut gateway, "large", json!({"count": 9_000}));
    told.call(&mut gateway, "large", json!({"count": "x"}));
    told.take(&gateway.request("tools/call", json!({"name": "echo", "arguments": [1]})));
    told.call(&mut gateway, "change", extra("another"));
    gateway.hears("notifications/tools/list_changed");
    told.call(&mut gateway, "extra", json!({}));
    let more = json!([{"name": "more", "inputSchema": {"type": "object"}}]).to_string();
    told.call(&mut gateway, "change", json!({ "text": more }));
    gateway.hears("notifications/tools/list_changed");
    told.call(&mut gateway, "more", json!({}));
    told.others(&mut gateway);
    declare(&bench);
    for at in [json!("/srv/docs/a"), json!("/etc/passwd"), json!(7)] {
        told.call(&mut gateway, "echo", json!({ "at": at }));
    }
    fs::write(bench.server("odd").join("hang"), "").unwrap();
    told.call(&mut gateway, "die", json!({}));
    // It waits for the server, in vain. A call may come before the gateway has seen the server's end.
    until("it waits in vain", || {
        let answer = told.call(&mut gateway, "echo", json!({}));
        refusal(&answer)["reason"] == "no_provider"
    });
    fs::remove_file(bench.server("odd").join("hang")).unwrap();
    until("it runs again", || gateway.call("fails", json!({}))["content"][0]["type"] == "text");
    beside(&bench, |beside| beside.freeze(&Freeze::all()).unwrap());
    told.call(&mut gateway, "echo", json!({}));
    told.others(&mut gateway);
    beside(&bench, |beside| beside.freeze(&Freeze::all().thaw()).unwrap());
    beside(&bench, |beside| beside.revoke(newest(&bench)).unwrap());
    told.call(&mut gateway, "echo", json!({}));
    told.others(&mut gateway);
    assert!(gateway.end().success());
    for reason in [
        Reason::UnknownTool,
        Reason::TimedOut,
        Reason::ResultTooLarge,
        Reason::BadArgument,
        Reason::ToolChanged,
        Reason::NotGranted,
        Reason::OutOfScope,
        Reason::BadPath,
        Reason::ProviderGone,
        Reason::NoProvider,
        Reason::Frozen,
        Reason::Revoked,
    ] {
        assert!(told.0.contains(reason.name()), "{}: {:?}", reason.name(), told.0);
    }
    bench.settled();
}

/// The same of what a policy asks about, and of tokens that have ended.
#[test]
fn asked_call_and_ended_token_name_neither_home_nor_token_nor_command() {
    let (bench, mut told) = (Bench::new(), Told::default());
    let server = format!("server=odd:{}", bench.server("odd").display());
    let mut gateway = bench.start(&[&server, "class=irreversible=slow", "limit=calls:4"]).session();
    let asked = told.call(&mut gateway, "echo", json!({}));
    let ask = asked["_meta"]["dev.syscap/refusal"]["got"].as_str().unwrap().parse().unwrap();
    waits::answer(&bench, Seq::new(ask), ApprovalAnswer::Deny);
    told.call(&mut gateway, "echo", json!({}));
    told.call(&mut gateway, "slow", json!({}));
    let token = newest(&bench);
    assert!(gateway.end().success());
    let mut gateway = bench.start(&[&server, "class=read=*", &format!("token={token}")]).session();
    for _ in 0..5 {
        told.call(&mut gateway, "echo", json!({}));
    }
    told.others(&mut gateway);
    assert!(gateway.end().success());
    beside(&bench, |beside| {
        let grant = Grant::to("agent").tools(["odd.echo"]).expires_in(Duration::from_secs(2));
        beside.issue(grant).unwrap();
    });
    let mut gateway = bench.start(&[&server]).session();
    until("it expires", || {
        told.call(&mut gateway, "echo", json!({}));
        told.0.contains(Reason::Expired.name())
    });
    told.others(&mut gateway);
    assert!(gateway.end().success());
    for reason in [Reason::Asked, Reason::ApprovalDenied, Reason::OverBudget, Reason::Expired] {
        assert!(told.0.contains(reason.name()), "{}: {:?}", reason.name(), told.0);
    }
}

/// The same where it can't even begin; the operator reads all of it.
#[test]
fn error_of_initialize_names_neither_home_nor_token_nor_command() {
    let bench = Bench::new();
    assert!(bench.gateway(&[]).session().end().success());
    let token = newest(&bench);
    beside(&bench, |beside| beside.revoke(token).unwrap());
    let (named, none) = (format!("token={token}"), format!("token={}", "0a".repeat(32)));
    for (words, said) in [
        (&[][..], "token reissue"),
        (&[named.as_str()], "token reissue"),
        (&[none.as_str()], "there is no token"),
        (&["agent=other", "timeout=7200000", "limit=wall_us:3600000000"], "--budget"),
    ] {
        let mut gateway = bench.gateway(words);
        let begun = gateway.request(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "raw", "version": "1"}}),
        );
        assert!(begun["error"]["message"].is_string(), "{begun}");
        gateway.said_with(said);
        assert!(!gateway.wait().success());
    }
}
