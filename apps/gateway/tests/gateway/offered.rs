//! What is offered appears, or is named; the operator is told the command that shows it.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};
use syscap::format::{EffectClass, Label, Manifest, Reason, TokenId, ToolId};
use syscap::prelude::*;
use syscap::syscalls::stated::{ArgumentKind, Declared, PathRoot, Stated};
use syscap::{Configured, Grant, Options, Runtime};

use crate::gateway::bench::{Bench, GatewayProcess, refusal, text, until};

fn extra(name: &str) -> String {
    json!([{"name": name, "description": "does one thing", "inputSchema": {"type": "object"}}])
        .to_string()
}

fn tool(name: &str) -> ToolId {
    ToolId::new(name).unwrap()
}

/// The newest token of the home.
fn newest(bench: &Bench) -> TokenId {
    Options::new().inspect(bench.home()).unwrap().view().tokens[0].id
}

fn tokens(bench: &Bench) -> usize {
    Options::new().inspect(bench.home()).unwrap().kernel().token_count()
}

/// What a list of tools says of those that are missing.
fn missing(gateway: &mut GatewayProcess) -> Value {
    let listed = gateway.request("tools/list", json!({}));
    listed["result"]["_meta"]["dev.syscap/missing"].clone()
}

/// Issues a token once more, with a tool besides, beside the gateway.
fn reissue(bench: &Bench, token: TokenId, besides: &str) {
    let log = Options::new().inspect(bench.home()).unwrap();
    let grant = log.grant_like(token).unwrap().tools([besides]);
    let beside = Runtime::connect(bench.home()).unwrap();
    beside.issue(grant).unwrap();
    beside.close().unwrap();
}

/// States something of a tool, beside the gateway.
fn state(bench: &Bench, name: &str, stated: impl FnOnce(&mut Stated)) {
    let beside = Runtime::command(bench.home()).unwrap();
    let manifest = beside.tool(&tool(name)).unwrap().manifest;
    let mut now = Stated::of(&manifest).unwrap();
    stated(&mut now);
    let set: Vec<Manifest> = vec![now.on(&manifest).unwrap()];
    beside.configure(&Configured { set, unset: Vec::new() }).unwrap();
    beside.close().unwrap();
}

/// A tool that turns up is pinned, granted to nobody, and named with the one command that grants
/// it; once that is done it is shown, before anything is called.
#[test]
fn a_tool_that_turns_up_is_named_and_shown_once_it_is_granted() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    assert_eq!(missing(&mut gateway), Value::Null);
    gateway.call("change", json!({"text": extra("extra")}));
    gateway.hears("notifications/tools/list_changed");
    assert!(!gateway.names().contains(&String::from("extra")));
    let told = missing(&mut gateway);
    assert_eq!(told["tools"], json!([{"tool": "odd.extra", "why": "not_granted"}]));
    let token = newest(&bench);
    let home = bench.home().display().to_string();
    let token_text = token.to_string();
    let command = gateway.command("syscap token reissue");
    let expected =
        ["syscap", "token", "reissue", &home, &token_text, "--tool", "odd.extra", "--dry-run"];
    assert_eq!(command, expected);
    assert!(told["next"].as_str().unwrap().contains("an operator"), "{told}");
    // What is called all the same names it too.
    let refused = gateway.call("extra", json!({}));
    assert_eq!(refusal(&refused)["code"], Reason::NotGranted.code());
    gateway.unasked.clear();
    reissue(&bench, token, "odd.extra");
    gateway.hears("notifications/tools/list_changed");
    assert!(gateway.names().contains(&String::from("extra")));
    assert_eq!(missing(&mut gateway), Value::Null);
    let result = gateway.call("echo", json!({}));
    assert_eq!(text(&result), "{}", "{result}");
    assert!(gateway.end().success());
    assert_eq!(tokens(&bench), 2);
    bench.settled();
}

/// A second server behind a token for the first: its tools are named, all of them by one command.
#[test]
fn a_second_server_is_named_with_the_command_that_grants_it() {
    let bench = Bench::new();
    fs::create_dir_all(bench.server("even")).unwrap();
    let servers =
        ["odd", "even"].map(|name| format!("server={name}:{}", bench.server(name).display()));
    assert!(bench.start(&[&servers[0], "class=local_write=*"]).session().end().success());
    let mut gateway = bench.start(&[&servers[0], &servers[1], "class=local_write=*"]).session();
    let shown = gateway.names();
    assert!(shown.iter().all(|name| name.starts_with("odd_")), "{shown:?}");
    let told = missing(&mut gateway);
    let in_all = told["in_all"].as_u64().unwrap();
    let command = gateway.command("syscap token reissue");
    let named: Vec<&str> = command[6].split(',').collect();
    assert!(named.iter().all(|tool| tool.starts_with("even.")), "{named:?}");
    let token = newest(&bench);
    let log = Options::new().inspect(bench.home()).unwrap();
    let tools: Vec<ToolId> = log.kernel().manifests().map(|one| one.tool.clone()).collect();
    let even = tools.iter().map(ToolId::as_str).filter(|tool| tool.starts_with("even."));
    // With its prompts and resources, which are no tools to the client.
    assert_eq!(in_all, even.clone().count() as u64);
    let grant = log.grant_like(token).unwrap().tools(even);
    let beside = Runtime::connect(bench.home()).unwrap();
    beside.issue(grant).unwrap();
    beside.close().unwrap();
    gateway.hears("notifications/tools/list_changed");
    assert_eq!(gateway.names().len(), 2 * shown.len());
    assert!(gateway.end().success());
    bench.settled();
}

/// Where the operator said so beforehand it is granted by itself: with no more left than there was,
/// and nothing else than what was meant.
#[test]
fn pregranted_tool_is_shown_when_it_appears() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&["grant=odd.extra*", "limit=calls:9"]).session();
    gateway.call("change", json!({"text": extra("extra_one")}));
    until("it is shown", || gateway.names().contains(&String::from("extra_one")));
    assert_eq!(missing(&mut gateway), Value::Null);
    gateway.call("change", json!({"text": extra("other")}));
    until("it is named", || missing(&mut gateway) != Value::Null);
    assert!(!gateway.names().contains(&String::from("other")));
    assert!(gateway.end().success());
    let log = Options::new().inspect(bench.home()).unwrap();
    let view = log.view();
    assert_eq!(view.tokens.len(), 2);
    let calls = |place: usize| view.tokens[place].limits.get(Dimension::Calls);
    assert_eq!((calls(1), calls(0)), (9, 8));
    assert!(view.tokens[0].label.is_untrusted());
    assert!(view.tokens[0].expires <= view.tokens[1].expires);
    bench.settled();
}

/// A token that somebody else issued for the agent, and that lets less be done, is not taken up.
#[test]
fn no_narrower_token_is_taken_up() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let before = gateway.names();
    gateway.call("change", json!({"text": extra("extra")}));
    gateway.hears("notifications/tools/list_changed");
    let beside = Runtime::connect(bench.home()).unwrap();
    // It forgets nothing that was read.
    let narrower = Grant::to("agent").tools(["odd.extra"]).begins_with(Label::UNTRUSTED);
    beside.issue(narrower).unwrap();
    beside.close().unwrap();
    assert_eq!(refusal(&gateway.call("extra", json!({})))["code"], Reason::NotGranted.code());
    let names: BTreeSet<String> = gateway.names().into_iter().collect();
    assert!(names.is_subset(&before.into_iter().collect()));
    assert!(gateway.end().success());
    bench.settled();
}

/// What an operator says of a tool's class counts at once, is not undone by what the command line
/// said before or says the next time, and leaves alone what is out.
#[test]
fn a_class_is_changed_while_the_gateway_runs() {
    let bench = Bench::new();
    let server = format!("server=odd:{}", bench.server("odd").display());
    let words = [server.as_str(), "class=external_write=echo", "class=read=slow"];
    let mut gateway = bench.start(&words).session();
    assert_eq!(refusal(&gateway.call("echo", json!({})))["code"], Reason::Asked.code());
    let slow = gateway.begin("slow", json!({"count": 3_000}));
    until("it runs", || bench.got_method("odd", "tools/call") == 1);
    let all = gateway.names();
    state(&bench, "odd.slow", |stated| stated.class = Some(EffectClass::Irreversible));
    state(&bench, "odd.echo", |stated| stated.class = Some(EffectClass::Read));
    gateway.hears("notifications/tools/list_changed");
    assert_eq!(gateway.names(), all);
    until("it counts", || gateway.call("echo", json!({}))["isError"] != true);
    // What was out ends as it was let through; the next is another.
    assert_eq!(text(&gateway.result(&slow)), "slept");
    let again = gateway.call("slow", json!({"count": 1}));
    assert_eq!(refusal(&again)["class"], "irreversible");
    assert!(gateway.end().success());
    let records = bench.count("Tools");
    for word in ["class=external_write=echo", "class=irreversible=echo", "hints=yes"] {
        let mut gateway = bench.start(&[&server, word]).session();
        assert_eq!(text(&gateway.call("echo", json!({}))), "{}", "{word}");
        assert!(gateway.end().success());
    }
    let log = Options::new().inspect(bench.home()).unwrap();
    let manifest = log.tool(&tool("odd.echo")).unwrap().manifest;
    assert_eq!(manifest.effect, EffectClass::Read);
    assert!(bench.count("Tools") >= records);
    // Taken back, what the command line says counts again.
    state(&bench, "odd.echo", |stated| stated.class = None);
    let mut gateway = bench.start(&[&server, "class=irreversible=echo"]).session();
    assert!(refusal(&gateway.call("echo", json!({})))["code"].is_u64());
    assert!(gateway.end().success());
}

/// Two gateways whose command lines say different things of one tool do not write records against
/// each other.
#[test]
fn two_gateways_that_disagree_come_to_rest() {
    let bench = Bench::new();
    let server = format!("server=odd:{}", bench.server("odd").display());
    let one = bench.start(&[&server, "class=read=echo"]).session();
    let two = bench.start(&[&server, "class=local_write=echo"]).session();
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    let records = bench.count("Tools");
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    assert_eq!(bench.count("Tools"), records);
    assert!(records <= 6, "{records}");
    assert!(two.end().success() && one.end().success());
}

/// Which argument is a path is the operator's word: then scopes reach a server's tool, and what is
/// no such path is refused, on the record, before the server hears of it.
#[test]
fn declared_arguments_are_held_against_scopes() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    assert_eq!(
        text(&gateway.call("echo", json!({"at": "/srv/docs/a"}))),
        r#"{"at":"/srv/docs/a"}"#
    );
    state(&bench, "odd.echo", |stated| {
        let root = PathRoot::parse("docs=/srv/docs").unwrap();
        let declared = Declared::new(ArgumentKind::Path(vec![root]));
        stated.arguments.insert(Box::from("at"), declared);
    });
    let got = bench.got_method("odd", "tools/call");
    let refused = gateway.call("echo", json!({"at": "/srv/docs/a"}));
    let refused = refusal(&refused);
    assert_eq!(
        (&refused["code"], &refused["field"]),
        (&Reason::OutOfScope.code().into(), &"at".into())
    );
    // Just what was refused.
    let next = gateway.command("syscap token reissue");
    let granted = ["--read", "docs/a", "--write", "docs/a", "--dry-run"];
    assert_eq!(next[next.len() - 5..], granted);
    assert!(!refused["next"].as_str().unwrap().contains("syscap "), "{refused}");
    for wrong in [json!("/etc/passwd"), json!("/srv/docs/../x"), json!("docs/a"), json!(7)] {
        let refused = gateway.call("echo", json!({"at": wrong}));
        let reason = if wrong.is_string() { Reason::BadPath } else { Reason::BadArgument };
        assert_eq!(refusal(&refused)["code"], reason.code(), "{wrong}");
    }
    assert_eq!(bench.got_method("odd", "tools/call"), got);
    // A token that grants it is taken up with the next call.
    let log = Options::new().inspect(bench.home()).unwrap();
    let grant = log.grant_like(newest(&bench)).unwrap();
    let grant = grant.read("docs/open").write("docs/open").besides().unwrap();
    let beside = Runtime::connect(bench.home()).unwrap();
    beside.issue(grant).unwrap();
    beside.close().unwrap();
    let inside = json!({"at": "/srv/docs/open/a"});
    assert_ne!(gateway.call("echo", inside.clone())["isError"], true);
    assert_eq!(refusal(&gateway.call("echo", json!({"at": "/srv/docs/a"})))["code"], 304);
    assert_eq!(bench.got_method("odd", "tools/call"), got + 1);
    assert!(gateway.end().success());
    // The server's next list takes nothing of it back.
    let mut gateway = bench.gateway(&[]).session();
    assert_eq!(refusal(&gateway.call("echo", json!({"at": "/srv/docs/a"})))["code"], 304);
    assert_ne!(gateway.call("echo", inside)["isError"], true);
    assert!(gateway.end().success());
    bench.settled();
}

/// After a renewal the tools of a server that comes late are granted as before it.
#[test]
fn a_late_server_is_granted_after_a_renewal_too() {
    let bench = Bench::new();
    fs::create_dir_all(bench.server("even")).unwrap();
    let servers =
        ["odd", "even"].map(|name| format!("server={name}:{}", bench.server(name).display()));
    fs::write(bench.server("odd").join("hang"), "").unwrap();
    let words = [&servers[0], &servers[1], "class=local_write=*", "limit=calls:2", "renew=1"];
    let mut gateway = bench.start(&words).session();
    for _ in 0..3 {
        assert_eq!(text(&gateway.call("even_echo", json!({}))), "{}");
    }
    assert_eq!(tokens(&bench), 2);
    fs::remove_file(bench.server("odd").join("hang")).unwrap();
    gateway.hears("notifications/tools/list_changed");
    assert!(gateway.names().contains(&String::from("odd_echo")));
    assert!(gateway.end().success());
    bench.settled();
}

/// However many tokens others have got since, an agent's own are found.
#[test]
fn an_agents_token_is_found_among_very_many() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&["limit=calls:1"]).session();
    assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
    let spent = newest(&bench);
    let beside = Runtime::connect(bench.home()).unwrap();
    let log = Options::new().inspect(bench.home()).unwrap();
    beside.issue(log.grant_like(spent).unwrap()).unwrap();
    for n in 0..1_030 {
        beside.issue(Grant::to(&format!("other{n}")).tools(["echo"])).unwrap();
    }
    assert!(beside.view().unwrap().token(spent).is_none());
    beside.close().unwrap();
    assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
    assert!(gateway.end().success());
    bench.settled();
}

/// The commands that are told are what a shell reads, whatever the home is called.
#[test]
fn commands_name_the_home_as_one_word() {
    let dir = host_support::scratch();
    let home = dir.path().join("my home; it's $HOME");
    Options::new().create(&home).unwrap().close().unwrap();
    let bench = Bench { dir };
    fs::create_dir(bench.server("odd")).unwrap();
    let server = format!("server=odd:{}", bench.server("odd").display());
    let mut gateway = GatewayProcess::at(&home, &[&server]).session();
    let refused = gateway.call("echo", json!({}));
    let next = refusal(&refused)["next"].as_str().unwrap();
    assert!(!next.contains("my home"), "{next}");
    let all = gateway.command("syscap approvals approve");
    assert_eq!(all[..3], ["syscap", "approvals", "approve"]);
    assert_eq!(all[3], home.display().to_string());
    assert_eq!(all.len(), 5);
    // So it is in a command that is the gateway's own.
    let review = gateway.command("syscap mcp '");
    assert_eq!(review[..2], ["syscap", "mcp"]);
    assert_eq!(review[2], home.display().to_string());
    assert!(gateway.end().success());
}

/// A server may announce a change with every call: the list is read at once for each, and the pauses
/// between lists, which grow to half a minute, are nobody's who calls.
#[test]
fn call_after_an_announced_change_has_the_list_read_at_once() {
    const CALLS: usize = 14;
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let before = bench.got_method("odd", "tools/list");
    for _ in 0..CALLS {
        let result = gateway.call("change", json!({"text": "[]"}));
        assert_eq!(text(&result), "changed", "{result}");
    }
    assert!(bench.got_method("odd", "tools/list") >= before + CALLS - 1);
    assert!(gateway.end().success());
    bench.settled();
}
