//! `net.egress`: routes and purposes are named in the capability.

use host_support::server::{Server, answer};
use syscap::format::{EffectClass, Item, Scope};
use syscap::policy::Policy;
use syscap::prelude::*;

use crate::web::world::{call, local, text, uint, world};

fn grant(routes: &[&str], purposes: &[&str]) -> Grant {
    let grant = local(&["net.egress", "http_request", "echo"]);
    let grant = grant.scope("route", Scope::names(routes).unwrap());
    grant.scope("purpose", Scope::names(purposes).unwrap())
}

/// A home whose policy lets `net.egress` through.
fn approving() -> crate::web::world::World {
    let world = world();
    let text = Policy::preset(syscap::policy::Preset::Standard).unwrap();
    let json = syscap::format::json::from_data(
        syscap::format::Canonical::check(
            syscap::kernel::PolicyEngine::document(&text),
            syscap::format::Profile::CONTROL,
        )
        .unwrap()
        .item(),
    );
    let json = json.replace(r#""auto_approve":[]"#, r#""auto_approve":["net.egress"]"#);
    let policy = Policy::from_json(json.as_bytes()).unwrap();
    world.rt.set_policy(policy).unwrap();
    world
}

#[test]
fn a_payload_goes_by_a_named_route_for_a_named_purpose() {
    let world = approving();
    let server = Server::saying(answer("202 Accepted", "text/plain", "queued"));
    let settings = format!(
        r#"{{"routes": {{
            "support": {{"url": "http://127.0.0.1:{0}/in?a=b", "addresses": ["127.0.0.1/32"],
                "headers": {{"x-team": "bees"}}, "max_bytes": 100}},
            "archive": {{"url": "http://127.0.0.1:{0}/put", "method": "PUT",
                "content_type": "text/csv", "addresses": ["127.0.0.1/32"]}},
            "inner": {{"url": "http://127.0.0.1:{0}/no"}}
        }}}}"#,
        server.port
    );
    world.set("net.egress", &settings);
    let session = world.session(grant(&["support", "archive", "inner", "gone"], &["reply"]));
    let send = |route: &str, purpose: &str, payload: &str| {
        let args =
            format!(r#"{{"route": "{route}", "purpose": "{purpose}", "payload_ref": {payload}}}"#);
        session.request("net.egress").json(&args, Escapes::Read).wait().unwrap()
    };
    let result = send("support", "reply", r#""hello""#);
    assert_eq!(
        (uint(&result, "status"), text(&result, "data").as_deref()),
        (Some(202), Some("queued"))
    );
    assert_eq!(world.last_effects(), (EffectClass::ExternalWrite, EffectClass::ExternalWrite));
    // A payload that an earlier result is.
    let echoed = session.call("echo", args! { "value": "from before" }).unwrap();
    let record = echoed.receipt().outcome_seq;
    let by_ref = format!(r#"{{"$ref": {{"record": {record}, "path": ["value"]}}}}"#);
    send("archive", "reply", &by_ref);
    send("support", "reply", r#"{"a": [1]}"#);
    let seen = server.seen();
    let sent: Vec<_> = seen.iter().map(|s| (s.line(), s.text())).collect();
    assert_eq!(sent[0], ("POST /in?a=b HTTP/1.1", "hello"));
    assert_eq!(sent[1].0, "PUT /put HTTP/1.1");
    assert!(sent[1].1.contains("from before"), "{}", sent[1].1);
    assert_eq!(sent[2], ("POST /in?a=b HTTP/1.1", r#"{"a":[1]}"#));
    assert_eq!(seen[0].header("x-team"), Some("bees"));
    assert_eq!(seen[1].header("content-type"), Some("text/csv"));
    assert_eq!(seen[2].header("content-type"), Some("application/json"));
    let long = format!(r#""{}""#, "x".repeat(101));
    for (route, purpose, payload, reason) in [
        ("support", "spam", r#""x""#, Reason::OutOfScope),
        ("gone", "reply", r#""x""#, Reason::OutOfScope),
        ("other", "reply", r#""x""#, Reason::OutOfScope),
        ("support", "reply", "null", Reason::BadArgument),
        ("support", "reply", &long, Reason::BadArgument),
        // A route says itself which inner addresses it leads to; a token's do not count for it.
        ("inner", "reply", r#""x""#, Reason::ForbiddenAddress),
    ] {
        assert_eq!(send(route, purpose, payload).reason(), Some(reason), "{route} {purpose}");
    }
    assert_eq!(server.seen().len(), 3);
    world.end();
}

/// What is not granted is not told apart from what is not there.
#[test]
fn which_routes_there_are_is_not_told() {
    let world = approving();
    world.set("net.egress", r#"{"routes": {"hidden": {"url": "https://a.test/"}}}"#);
    let session = world.session(grant(&["mine"], &["p"]));
    let refused = |route: &str| {
        let args = format!(r#"{{"route": "{route}", "purpose": "p", "payload_ref": "x"}}"#);
        let result = call(&session, "net.egress", &args);
        assert_eq!(result.reason(), Some(Reason::OutOfScope));
        result.delivered().item().get("allowed").and_then(Item::as_text).unwrap().to_owned()
    };
    assert_eq!(refused("hidden"), refused("none"));
    // What it is told names no command of the operator's.
    assert!(!refused("mine").contains("syscap"), "{}", refused("mine"));
    world.end();
}

#[test]
fn without_a_route_it_sends_nothing_and_asks_by_itself() {
    let world = world();
    let session = world.session(grant(&["support"], &["reply"]));
    let args = r#"{"route": "support", "purpose": "reply", "payload_ref": "x"}"#;
    assert_eq!(call(&session, "net.egress", args).reason(), Some(Reason::OutOfScope));
    let server = Server::saying(answer("200 OK", "text/plain", "x"));
    let url = server.url("/");
    let route = format!(r#"{{"routes": {{"support": {{"url": "{url}", "method": "POST"}}}}}}"#);
    world.set("net.egress", &route);
    // The preset asks a person about what is sent out.
    assert_eq!(call(&session, "net.egress", args).reason(), Some(Reason::Asked));
    assert_eq!(server.seen().len(), 0);
    world.end();
}
