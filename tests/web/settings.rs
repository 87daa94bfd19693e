//! What an operator sets a tool to: each field, what it is where it is not set, and who may.

use host_support::end;
use host_support::server::{Server, answer};
use syscap::format::{Amounts, EffectClass, TxOutcome, json};
use syscap::kernel::RegistryError;
use syscap::prelude::*;
use syscap::syscalls::net::Network;
use syscap::{Configured, Error};

use crate::web::world::{call, flag, local, local_to, text, uint, world};

fn manifest(
    tool: &str,
    settings: &str,
) -> Result<syscap::format::Manifest, syscap::syscalls::net::SettingsError> {
    let settings = json::to_data(settings.as_bytes()).unwrap();
    Network::manifest(ToolId::new(tool).unwrap(), settings)
}

/// The second seed's fields, each with its default.
#[test]
fn every_field_has_its_default() {
    let world = world();
    world.set("plain", "{}");
    let session = world.session(local(&["plain"]));
    let long = "x".repeat(30_000);
    let server = Server::saying(answer("200 OK", "text/plain", &long));
    let args = |more: &str| format!(r#"{{"url": "{}"{more}}}"#, server.url("/"));
    // `allowed_methods`: GET and HEAD. `default_method`: GET.
    let result = call(&session, "plain", &args(""));
    assert_eq!(server.seen()[0].line(), "GET / HTTP/1.1");
    // `max_response_chars`: 20,000. `response_format`: auto.
    assert_eq!(text(&result, "data").unwrap().chars().count(), 20_000);
    assert_eq!(flag(&result, "truncated"), Some(true));
    assert_eq!(call(&session, "plain", &args(r#", "method": "HEAD""#)).reason(), None);
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let refused = call(&session, "plain", &args(&format!(r#", "method": "{method}""#)));
        assert_eq!(refused.reason(), Some(Reason::BadArgument), "{method}");
    }
    // `timeout_ms`: 10 s are set aside, and some.
    let held = manifest("plain", "{}").unwrap();
    assert_eq!(held.effect, EffectClass::ExternalRead);
    // `base_url`: none, so a path alone leads nowhere.
    let refused = call(&session, "plain", r#"{"path": "x"}"#);
    assert_eq!(refused.reason(), Some(Reason::BadArgument));
    world.end();
}

#[test]
fn settings_are_merged_with_the_call() {
    let world = world();
    let server = Server::saying(answer("200 OK", "text/plain", "x"));
    let settings = format!(
        r#"{{"base_url": "http://127.0.0.1:{}/v1", "default_method": "HEAD",
            "default_headers": {{"Accept": "text/plain", "X-Team": "bees"}},
            "default_query": {{"page": "1", "lang": "en"}}, "response_format": "text"}}"#,
        server.port
    );
    world.set("docs", &settings);
    let session = world.session(local(&["docs"]));
    call(&session, "docs", r#"{"path": "a"}"#);
    call(
        &session,
        "docs",
        r#"{"path": "/a", "method": "GET", "query": {"page": "2"},
        "headers": {"x-team": "wasps"}}"#,
    );
    call(&session, "docs", r#"{"path": "a?lang=de", "method": "GET"}"#);
    call(&session, "docs", &format!(r#"{{"method": "GET", "path": "{}"}}"#, server.url("/abs")));
    call(&session, "docs", r#"{"method": "GET"}"#);
    let seen = server.seen();
    let lines: Vec<&str> = seen.iter().map(|sent| sent.line()).collect();
    assert_eq!(
        lines,
        [
            "HEAD /v1/a?lang=en&page=1 HTTP/1.1",
            "GET /v1/a?lang=en&page=2 HTTP/1.1",
            "GET /v1/a?lang=de&page=1 HTTP/1.1",
            "GET /abs?lang=en&page=1 HTTP/1.1",
            "GET /v1/?lang=en&page=1 HTTP/1.1",
        ]
    );
    let team: Vec<_> = seen.iter().map(|sent| sent.header("x-team").unwrap()).collect();
    assert_eq!(team, ["bees", "wasps", "bees", "bees", "bees"]);
    assert!(seen.iter().all(|sent| sent.header("accept") == Some("text/plain")));
    // A path leads nowhere else, however it is written.
    for path in [
        "../x",
        "..%2fx",
        "%2e%2e/x",
        "//evil.test/x",
        "/\\\\evil.test",
        "https:evil.test",
        "a/../../x",
        "a/..;/x",
        "%252e%252e/x",
        "\\u0000",
        "x\\r\\ny",
    ] {
        let refused = call(&session, "docs", &format!(r#"{{"path": "{path}", "method": "GET"}}"#));
        assert_eq!(refused.reason(), Some(Reason::BadArgument), "{path}");
    }
    assert_eq!(server.seen().len(), 5);
    world.end();
}

#[test]
fn a_format_that_is_set_is_kept_to() {
    let world = world();
    world.set("strict", r#"{"response_format": "json"}"#);
    world.set("loose", r#"{"response_format": "text"}"#);
    world.set("blind", r#"{"withhold": true}"#);
    let session = world.session(local(&["strict", "loose", "blind"]));
    let (page, data) = (
        Server::saying(answer("200 OK", "text/html", "<p>")),
        Server::saying(answer("200 OK", "text/plain", "{\"a\": 1}")),
    );
    let ask = |tool: &str, server: &Server| {
        call(&session, tool, &format!(r#"{{"url": "{}"}}"#, server.url("/")))
    };
    assert_eq!(ask("strict", &page).reason(), Some(Reason::BadResponse));
    assert_eq!(text(&ask("strict", &data), "format").as_deref(), Some("json"));
    assert_eq!(text(&ask("loose", &data), "data").as_deref(), Some("{\"a\": 1}"));
    // Of an answer that is withheld there is the status alone.
    let moved = "HTTP/1.1 302 Found\r\nLocation: /words\r\nContent-Type: a/words\r\n\
                 Content-Length: 5\r\n\r\nwords";
    for (server, status) in [(&data, 200), (&page, 200), (&Server::saying(moved), 302)] {
        let result = ask("blind", server);
        assert_eq!(uint(&result, "status"), Some(status));
        assert_eq!(text(&result, "format").as_deref(), Some("withheld"));
        assert!(!result.to_json().contains("words") && text(&result, "data").is_none());
    }
    world.end();
}

#[test]
fn settings_that_say_something_else_are_refused() {
    for (settings, field) in [
        (r#"{"base": "https://a.test"}"#, "base"),
        (r#"{"base_url": "a.test"}"#, "base_url"),
        (r#"{"base_url": "https://a.test/?x=y"}"#, "base_url"),
        (r#"{"base_url": "https://user:word@a.test/"}"#, "base_url"),
        (r#"{"base_url": "file:///etc"}"#, "base_url"),
        (r#"{"allowed_methods": []}"#, "allowed_methods"),
        (r#"{"allowed_methods": ["TRACE"]}"#, "allowed_methods"),
        (r#"{"allowed_methods": "GET"}"#, "allowed_methods"),
        (r#"{"default_method": "POST"}"#, "default_method"),
        (r#"{"default_headers": {"Host": "x"}}"#, "default_headers.Host"),
        (r#"{"default_headers": {"A": "1", "a": "2"}}"#, "default_headers.a"),
        // What is a credential is a secret, and is not on record.
        (r#"{"default_headers": {"Authorization": "Bearer x"}}"#, "default_headers.Authorization"),
        (r#"{"default_headers": {"X-Api-Key": "x"}}"#, "default_headers.X-Api-Key"),
        (r#"{"default_headers": {"X-Any": "Bearer x"}}"#, "default_headers.X-Any"),
        (r#"{"default_query": {"api_key": "x"}}"#, "default_query.api_key"),
        (r#"{"default_query": {"a": 1}}"#, "default_query"),
        (r#"{"timeout_ms": 0}"#, "timeout_ms"),
        (r#"{"timeout_ms": 9999999}"#, "timeout_ms"),
        (r#"{"auto_approve": "yes"}"#, "auto_approve"),
        (r#"{"response_format": "xml"}"#, "response_format"),
        (r#"{"max_response_chars": 9999999}"#, "max_response_chars"),
        (r#"{"secrets": [{"secret": "x"}]}"#, "secrets"),
        (r#"{"secrets": [{"secret": "../x", "header": "A"}]}"#, "secrets"),
        (r#"{"secrets": [{"secret": "x", "header": "Host"}]}"#, "secrets"),
        (r#"{"secrets": [{"secret": "x", "header": "a", "value": "y"}]}"#, "secrets"),
        (
            r#"{"secrets": [{"secret": "x", "header": "a"}, {"secret": "y", "header": "A"}]}"#,
            "secrets",
        ),
        (
            r#"{"default_headers": {"a": "1"}, "secrets": [{"secret": "x", "header": "A"}]}"#,
            "secrets",
        ),
        (r#"{"confidentiality": "none"}"#, "confidentiality"),
        (r#"{"roots": "none"}"#, "roots"),
        (r#"{"proxy": "https://p.test:1"}"#, "proxy"),
        (r#"{"agents": ["../x"]}"#, "agents"),
        (r#"{"title": "a\u202eb"}"#, "title"),
        (r#"{"description": ""}"#, "description"),
        (r#"{"template": "other"}"#, "template"),
        ("[]", "settings"),
    ] {
        let error = manifest("t", settings).unwrap_err();
        assert_eq!(error.field, field, "{settings}: {error}");
    }
}

/// It shadows nothing, is another tool with other settings, and is there again.
#[test]
fn a_tool_of_an_operators_is_one_of_the_homes() {
    let world = world();
    let set = |tool: &str, settings: &str| {
        let set = vec![manifest(tool, settings).unwrap()];
        world.rt.configure(&Configured { set, unset: Vec::new() })
    };
    for taken in ["fs.read", "fs_read", "echo"] {
        let refused = set(taken, "{}");
        let duplicate = Err(RegistryError::Duplicate(ToolId::new(taken).unwrap()));
        let refused = refused.map_err(|error| match error {
            Error::Registry(error) => error,
            other => panic!("{other}"),
        });
        assert_eq!(refused.map(|_| ()), duplicate);
    }
    let server = Server::saying(answer("200 OK", "text/plain", "x"));
    let named = r#"{"title": "Look things up", "description": "Looks up bees.", "agents": ["a"]}"#;
    set("bees", named).unwrap();
    let view = world.rt.view().unwrap();
    let tool = view.tools.iter().find(|tool| tool.tool.as_str() == "bees").unwrap();
    assert_eq!(&*tool.title, "Look things up");
    let session = world.session(local(&["bees"]));
    let args = format!(r#"{{"url": "{}"}}"#, server.url("/"));
    assert_eq!(call(&session, "bees", &args).reason(), None);
    // It is for its agents alone, whatever a token says.
    let token = world.rt.issue(local_to("b", &["bees"])).unwrap();
    let other = world.rt.session("b", token).unwrap();
    assert_eq!(call(&other, "bees", &args).reason(), Some(Reason::NotGranted));
    // Set anew it counts at once, and it is there when the home is opened again.
    set("bees", r#"{"max_response_chars": 1, "default_headers": {"x-n": "2"}}"#).unwrap();
    assert_eq!(call(&session, "bees", &args).reason(), None);
    assert_eq!(server.seen()[1].header("x-n"), Some("2"));
    drop((session, other));
    let (home, names, dir) = (world.home.clone(), world.names.clone(), world.dir);
    world.rt.close().unwrap();
    let rt = Options::new().lookup(names).open(&home).unwrap();
    let token = rt.issue(local(&["bees"])).unwrap();
    let session = rt.session("a", token).unwrap();
    assert_eq!(call(&session, "bees", &args).reason(), None);
    assert_eq!(server.seen()[2].header("x-n"), Some("2"));
    // And ends.
    let bees = ToolId::new("bees").unwrap();
    let unset = Configured { set: Vec::new(), unset: vec![bees.clone()] };
    rt.configure(&unset).unwrap();
    assert_eq!(call(&session, "bees", &args).reason(), Some(Reason::UnknownTool));
    assert!(matches!(rt.configure(&unset), Err(Error::NoSuch { .. })));
    end(&rt, &home);
    drop(dir);
}

/// The template itself can be set, and is as it was when that is taken back.
#[test]
fn a_built_in_tool_is_set_and_unset() {
    let world = world();
    let server = Server::saying(answer("200 OK", "text/plain", "x"));
    world.set("http_request", r#"{"default_headers": {"x-n": "1"}}"#);
    let args = format!(r#"{{"url": "{}"}}"#, server.url("/"));
    let session = world.local();
    assert_eq!(call(&session, "http_request", &args).reason(), None);
    drop(session);
    let (home, dir) = (world.home.clone(), world.dir);
    world.rt.close().unwrap();
    let rt = Options::new().open(&home).unwrap();
    let session = rt.session("a", rt.issue(local(&["http_request"])).unwrap()).unwrap();
    assert_eq!(call(&session, "http_request", &args).reason(), None);
    let http = ToolId::new("http_request").unwrap();
    rt.configure(&Configured { set: Vec::new(), unset: vec![http] }).unwrap();
    assert_eq!(call(&session, "http_request", &args).reason(), None);
    let seen = server.seen();
    let headers: Vec<_> = seen.iter().map(|sent| sent.header("x-n")).collect();
    assert_eq!(headers, [Some("1"), Some("1"), None]);
    assert_eq!(uint(&call(&session, "http_request", &args), "status"), Some(200));
    end(&rt, &home);
    drop(dir);
}

/// A tool that lets itself through does so in the policy only.
#[test]
fn auto_approve_in_settings_approves_nothing() {
    let world = world();
    let server = Server::saying(answer("200 OK", "text/plain", "x"));
    world.set("post", r#"{"allowed_methods": ["POST"], "auto_approve": true}"#);
    let session = world.session(local(&["post"]));
    let args = format!(r#"{{"url": "{}", "body": "x"}}"#, server.url("/"));
    assert_eq!(call(&session, "post", &args).reason(), Some(Reason::Asked));
    assert_eq!(server.seen().len(), 0);
    world.end();
}

/// Only an operator sets a tool: what another process offers has no settings, whatever it says.
#[test]
fn no_offer_sets_a_tool() {
    use std::sync::Arc;
    use syscap::provide::{HostCall, HostRan, Provider};
    struct Nobody;
    impl Provider for Nobody {
        fn run(&self, _: HostCall) -> HostRan {
            let result = Err(Reason::Failed.into());
            HostRan::new(result, TxOutcome::NoOp, Amounts::ZERO)
        }
    }
    let world = world();
    let mut offered = manifest("offered", "{}").unwrap();
    // What needs a scope is not taken from others at all.
    offered.dimensions.clear();
    world.rt.provide(vec![offered], Arc::new(Nobody)).unwrap();
    let view = world.rt.view().unwrap();
    let info = view.tools.iter().find(|tool| tool.tool.as_str() == "offered").unwrap();
    assert!(info.delegated, "it is run by who offered it, and not by the kernel");
    let detail = world.rt.tool(&ToolId::new("offered").unwrap()).unwrap();
    assert_eq!(detail.manifest.settings, None);
    world.end();
}
