//! Definitions are pinned, lists are filtered, tokens are found.

use serde_json::{Value, json};
use syscap::format::json::from_data;
use syscap::format::{
    Amounts, Dimension, EffectClass, Label, Manifest, MapBuilder, Reason, RecordKind, Refused,
    Role, ToolId, TxOutcome, definition_hash,
};
use syscap::keys::{KeyFile, KeyUse, Passphrase, Seal};
use syscap::prelude::*;
use syscap::provide::{HostCall, HostRan, Provider, Standing};
use syscap::{Beside, Runtime};

use crate::gateway::bench::{Bench, refusal, text};

fn extra(description: &str) -> String {
    json!([{"name": "extra", "description": description, "inputSchema": {"type": "object"}}])
        .to_string()
}

/// A tool that is defined anew in the middle of a session is refused until it is accepted.
#[test]
fn a_changed_definition_is_refused_until_accepted() {
    let bench = Bench::new();
    std::fs::write(bench.server("odd").join("tools"), extra("does one thing")).unwrap();
    let mut gateway = bench.gateway(&[]).session();
    assert!(gateway.names().contains(&String::from("extra")));
    gateway.call("change", json!({"text": extra("does another thing")}));
    gateway.hears("notifications/tools/list_changed");
    assert!(!gateway.names().contains(&String::from("extra")));
    let refused = gateway.call("extra", json!({}));
    assert_eq!(refusal(&refused)["code"], Reason::ToolChanged.code());
    // As it was, it is what was accepted.
    gateway.call("change", json!({"text": extra("does one thing")}));
    gateway.hears("notifications/tools/list_changed");
    assert!(gateway.names().contains(&String::from("extra")));
    gateway.call("change", json!({"text": extra("does another thing")}));
    gateway.hears("notifications/tools/list_changed");
    let access = Runtime::connect(bench.home()).unwrap();
    assert!(!access.is_holder());
    access.accept(&[ToolId::new("odd.extra").unwrap()]).unwrap();
    access.close().unwrap();
    // The kernel lets it through at once, whatever the list says.
    let let_through = gateway.request("tools/call", json!({"name": "extra"}));
    assert_eq!(let_through["error"]["message"], "extra", "{let_through}");
    assert!(gateway.end().success());
    bench.settled();
}

/// Where the operator's key is sealed nothing is put on record without a person, and nothing waits
/// for one: the gateway begins, new tools are not listed, and are once somebody has accepted them.
/// What the command line says otherwise of those on record waits too.
#[test]
fn with_a_sealed_key_new_tools_wait_for_a_person() {
    let passphrase = || Passphrase::new(b"secret".to_vec()).unwrap();
    let bench = Bench::with(Options::new().seal(Seal::By(passphrase())));
    let mut gateway = bench.gateway(&[]).session();
    assert_eq!(gateway.names(), [""; 0]);
    assert!(refusal(&gateway.call("echo", json!({})))["code"].is_u64());
    assert_eq!((bench.count("Tools"), bench.got_method("odd", "tools/call")), (1, 0));
    let access = Runtime::connect(bench.home()).unwrap();
    let view = access.view().unwrap();
    let new = view.tools.iter().filter(|tool| tool.standing == Standing::New);
    let new: Vec<_> = new.map(|tool| (tool.tool.clone(), tool.offered.unwrap())).collect();
    assert!(!new.is_empty());
    let log = Options::new().inspect(bench.home()).unwrap();
    let path = KeyUse::Role(Role::Operator).path(&bench.home().join("keys"));
    let key = KeyFile::read(&path).unwrap().unseal(&passphrase()).unwrap();
    let change = log.tools_change(&new, &[]).unwrap();
    let control = log.sign(&change, &key.public_key(), |bytes| Ok(key.sign(bytes))).unwrap();
    access.submit_with(RecordKind::Tools, control.clone(), &Beside::Accepted(new)).unwrap();
    access.close().unwrap();
    assert!(gateway.end().success());
    for words in [&[][..], &["class=irreversible=echo"]] {
        let mut gateway = bench.gateway(words).session();
        assert!(gateway.names().contains(&String::from("echo")));
        assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
        assert!(gateway.end().success());
    }
    let log = Options::new().inspect(bench.home()).unwrap();
    let echo = log.tool(&ToolId::new("odd.echo").unwrap()).unwrap().manifest;
    assert_eq!(echo.effect, EffectClass::LocalWrite);
    assert_eq!(bench.count("Tools"), 2);
    bench.settled();
}

/// The same definition after a restart is the same tool; another one is not.
#[test]
fn pins_outlast_the_gateway() {
    let bench = Bench::new();
    for (description, seen) in [("one", true), ("one", true), ("two", false)] {
        std::fs::write(bench.server("odd").join("tools"), extra(description)).unwrap();
        let mut gateway = bench.gateway(&[]).session();
        assert_eq!(gateway.names().contains(&String::from("extra")), seen, "{description}");
        assert!(gateway.end().success());
    }
    bench.settled();
}

/// Whatever text of a definition changes, wherever it stands, no client gets it before it is
/// accepted.
#[test]
fn text_changed_anywhere_reaches_no_client_before_it_is_accepted() {
    let bench = Bench::new();
    let long = "x".repeat(3_000);
    let base = json!({"name": "extra", "title": "Extra", "description": format!("{long} does it"),
        "inputSchema": {"type": "object", "properties": {"a": {"type": "object", "default": "d",
            "examples": ["e"], "properties": {"b": {"description": "nested"}}}}},
        "outputSchema": {"type": "object", "description": "out"},
        "annotations": {"title": "Noted"}, "icons": [{"src": "https://a.example/i.png"}],
        "_meta": {"vendor/hint": "meta"}});
    let changes = [
        ("/title", "Other"),
        ("/description", &format!("{long} STOLEN")),
        ("/inputSchema/properties/a/default", "STOLEN"),
        ("/inputSchema/properties/a/examples/0", "STOLEN"),
        ("/inputSchema/properties/a/properties/b/description", "STOLEN"),
        ("/outputSchema/description", "STOLEN"),
        ("/annotations/title", "STOLEN"),
        ("/icons/0/src", "https://stolen.example/i.png"),
        ("/_meta/vendor~1hint", "STOLEN"),
    ];
    let offers = |tool: &serde_json::Value| {
        std::fs::write(bench.server("odd").join("tools"), json!([tool]).to_string()).unwrap();
        let mut gateway = bench.gateway(&[]).session();
        let list = gateway.request("tools/list", json!({})).to_string();
        let seen = gateway.names().contains(&String::from("extra"));
        let called = gateway.request("tools/call", json!({"name": "extra"}));
        assert!(gateway.end().success());
        let code = called["result"]["_meta"]["dev.syscap/refusal"]["code"].as_u64();
        (seen, list, code)
    };
    assert!(offers(&base).0);
    let changed = Some(Reason::ToolChanged.code());
    for (place, text) in changes {
        let mut other = base.clone();
        *other.pointer_mut(place).unwrap() = json!(text);
        let (seen, list, code) = offers(&other);
        assert!(!list.contains(text), "{place}");
        assert_eq!((seen, code), (false, changed), "{place}");
    }
    assert!(offers(&base).0);
    let log = Options::new().inspect(bench.home()).unwrap();
    let pinned = log.tool(&ToolId::new("odd.extra").unwrap()).unwrap().manifest;
    let whole = pinned.whole_definition().unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&from_data(whole.item())).unwrap(), base);
    bench.settled();
}

/// A pin that an earlier version made by its hash alone stays one where that covered all that a
/// client is shown, and the definition is kept from then on; where it did not, it is accepted anew.
#[test]
fn earlier_pin_of_all_that_is_shown_stays() {
    let bench = Bench::new();
    let plain = json!({"name": "plain", "inputSchema": {"type": "object"}});
    let mut more = json!({"name": "more", "inputSchema": {"type": "object"}});
    let earlier = |value: &serde_json::Value| {
        let name = value["name"].as_str().unwrap();
        let tool = ToolId::new(&format!("odd.{name}")).unwrap();
        let schema = MapBuilder::new().text("type", "object").finish();
        let pinned =
            MapBuilder::new().item("inputSchema", schema.item()).text("name", name).finish();
        Manifest::new(tool, EffectClass::LocalWrite).defined_by(definition_hash(pinned.item()))
    };
    let runtime = Runtime::command(bench.home()).unwrap();
    runtime.provide(vec![earlier(&plain), earlier(&more)], std::sync::Arc::new(Nobody)).unwrap();
    runtime.close().unwrap();
    more["_meta"] = json!({"vendor/hint": "never pinned"});
    std::fs::write(bench.server("odd").join("tools"), json!([plain, more]).to_string()).unwrap();
    for _ in 0..2 {
        let mut gateway = bench.gateway(&[]).session();
        let names = gateway.names();
        assert!(names.contains(&String::from("plain")) && !names.contains(&String::from("more")));
        assert!(gateway.end().success());
    }
    let log = Options::new().inspect(bench.home()).unwrap();
    let kept = |tool: &str| {
        let manifest = log.tool(&ToolId::new(tool).unwrap()).unwrap().manifest;
        manifest.whole_definition().is_some()
    };
    assert_eq!((kept("odd.plain"), kept("odd.more")), (true, false));
    bench.settled();
}

/// Runs nothing.
struct Nobody;

impl Provider for Nobody {
    fn run(&self, _: HostCall) -> HostRan {
        HostRan::new(Err(Refused::new(Reason::ProviderGone)), TxOutcome::NoOp, Amounts::ZERO)
    }
}

/// A definition that is unsound is not offered, and the others are.
#[test]
fn unsound_definitions_are_left_out() {
    let bench = Bench::new();
    let deep = (0..33).fold(json!({}), |inner, _| json!({"properties": {"x": inner}}));
    let tools = json!([{"name": "no schema"}, 7, {"name": "deeper", "inputSchema": deep},
        {"name": "same", "inputSchema": {}}, {"name": "same", "inputSchema": {"x": 1}},
        {"name": "good", "inputSchema": {"type": "object"}},
        {"name": "big", "inputSchema": {}, "description": "x".repeat(300 << 10)}]);
    std::fs::write(bench.server("odd").join("tools"), tools.to_string()).unwrap();
    let mut gateway = bench.gateway(&[]).session();
    let names = gateway.names();
    assert!(names.contains(&String::from("good")) && names.contains(&String::from("echo")));
    for gone in ["no schema", "deeper", "same", "big"] {
        assert!(!names.contains(&String::from(gone)), "{gone}");
        assert!(refusal(&gateway.call(gone, json!({})))["code"].is_u64());
    }
    assert!(gateway.end().success());
    bench.settled();
}

/// Of a server that has more tools than are taken it is said how many, which, and what to do: to the
/// client, and on standard error. Those that are chosen are all that is taken.
#[test]
fn tools_beyond_the_limit_are_named_and_can_be_chosen() {
    let bench = Bench::new();
    let tools: Vec<Value> =
        (0..600).map(|n| json!({"name": format!("t{n:03}"), "inputSchema": {}})).collect();
    std::fs::write(bench.server("odd").join("tools"), json!(tools).to_string()).unwrap();
    let mut gateway = bench.gateway(&[]).session();
    let listed = gateway.request("tools/list", json!({}))["result"].clone();
    let shown = listed["tools"].as_array().unwrap().len();
    let missing = &listed["_meta"]["dev.syscap/missing"];
    let named = missing["tools"].as_array().unwrap();
    assert!(named.iter().any(|one| one["why"] == "left_out"), "{missing}");
    assert!(missing["in_all"].as_u64().unwrap() >= 600 - 256 && shown >= 256, "{missing}");
    assert!(gateway.said_with("left out").contains("more"), "{}", gateway.said());
    assert!(gateway.said_with(" tools 256 are offered").contains(": of 6"), "{}", gateway.said());
    assert!(gateway.said_with("--tool").contains("SERVER:NAME"));
    assert!(gateway.end().success());
    let mut gateway = bench.gateway(&["tool=odd:t59*", "tool=odd:t001"]).session();
    let listed = gateway.request("tools/list", json!({}))["result"].clone();
    let left_out = listed["_meta"]["dev.syscap/missing"]["tools"].as_array();
    assert!(left_out.into_iter().flatten().all(|one| one["why"] != "left_out"), "{listed}");
    let names = gateway.names();
    assert!(names.contains(&"t001".into()) && !names.contains(&"t002".into()), "{names:?}");
    assert!(gateway.end().success());
    bench.settled();
}

/// The list has what the named token grants, in one order; the rest is refused all the same.
#[test]
fn lists_are_filtered_by_the_token() {
    let bench = Bench::new();
    bench.gateway(&[]).session().end();
    let access = Runtime::command(bench.home()).unwrap();
    let grant = Grant::to("agent").tools(["odd.touch", "odd.echo", "fs.read", "current_time"]);
    let token = access.issue(grant.read("workspace").budget(Budget::standard())).unwrap();
    access.close().unwrap();
    let mut gateway = bench.gateway(&[&format!("token={token}")]).session();
    assert_eq!(gateway.names(), ["current_time", "echo", "fs_read", "touch"]);
    let refused = gateway.call("slow", json!({}));
    assert_eq!(refusal(&refused)["code"], Reason::NotGranted.code());
    let time = gateway.call("current_time", json!({}));
    assert_ne!(time["isError"], true, "{time}");
    let outside = gateway.call("fs_read", json!({"path": "../x"}));
    assert!(refusal(&outside)["code"].is_u64());
    assert!(gateway.end().success());
    bench.settled();
}

/// Without a name the newest token is used; a new one is issued for an agent that has none, and
/// none for one whose last was revoked.
#[test]
fn tokens_are_found_issued_and_stay_revoked() {
    let bench = Bench::new();
    bench.gateway(&[]).session().end();
    assert_eq!(bench.count("Issue"), 1);
    bench.gateway(&[]).session().end();
    assert_eq!(bench.count("Issue"), 1);
    let access = Runtime::command(bench.home()).unwrap();
    let agent = AgentId::new("agent").unwrap();
    let token = access.view_of(&agent, None).unwrap().tokens[0].id;
    access.revoke(token).unwrap();
    access.close().unwrap();
    let mut gateway = bench.gateway(&[]);
    let begun = gateway.request(
        "initialize",
        json!({"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}),
    );
    assert!(begun.get("error").is_some(), "{begun}");
    assert!(!gateway.end().success());
    assert_eq!(bench.count("Issue"), 1);
    let other = bench.gateway(&["agent=other"]).session();
    assert!(other.end().success());
    assert_eq!(bench.count("Issue"), 2);
    bench.settled();
}

/// What the operator says of class and limits is put on record; what is not said stays as it is.
#[test]
fn the_operators_word_is_put_on_record() {
    let bench = Bench::new();
    let server = format!("server=odd:{}", bench.server("odd").display());
    let says: [(&[&str], EffectClass, u64); 5] = [
        (&[], EffectClass::ExternalWrite, 60_000),
        (&["class=read=ec*"], EffectClass::Read, 60_000),
        (&["timeout=5000"], EffectClass::Read, 5_000),
        (&[], EffectClass::Read, 5_000),
        (&["class=irreversible=echo", "hints=yes"], EffectClass::Irreversible, 5_000),
    ];
    for (words, effect, wall_ms) in says {
        let mut all = vec![server.as_str()];
        all.extend(words);
        let mut gateway = bench.start(&all).session();
        let called = gateway.call("echo", json!({}));
        assert_eq!(called["isError"] == true, effect != EffectClass::Read, "{words:?}");
        let access = Runtime::connect(bench.home()).unwrap();
        let manifest = access.tool(&ToolId::new("odd.echo").unwrap()).unwrap().manifest;
        assert_eq!(manifest.effect, effect, "{words:?}");
        assert_eq!(manifest.wall_ms_max, Some(wall_ms), "{words:?}");
        access.close().unwrap();
        assert!(gateway.end().success());
    }
    bench.settled();
}

/// Results are untrusted until the operator vouches for them, and then trusted until the record
/// says otherwise.
#[test]
fn results_are_trusted_only_on_the_operators_word() {
    let bench = Bench::new();
    for (words, label) in
        [(&[][..], Label::UNTRUSTED), (&["trust=yes"], Label::PUBLIC), (&[], Label::PUBLIC)]
    {
        let mut gateway = bench.gateway(words).session();
        gateway.call("echo", json!({}));
        assert!(gateway.end().success());
        assert_eq!(bench.outcomes().last().unwrap().label, label, "{words:?}");
    }
    bench.settled();
}

/// A revocation in the middle of a session stops it at once.
#[test]
fn a_revocation_stops_a_session() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
    let access = Runtime::connect(bench.home()).unwrap();
    let token = access.view().unwrap().sessions[0].token;
    access.revoke(token).unwrap();
    let refused = gateway.call("echo", json!({}));
    assert_eq!(refusal(&refused)["code"], Reason::Revoked.code());
    let used = access.view().unwrap().token(token).unwrap().used;
    assert!(used.get(Dimension::Calls) >= 1);
    access.close().unwrap();
    assert!(gateway.end().success());
    assert_eq!(bench.got_method("odd", "tools/call"), 1);
}
