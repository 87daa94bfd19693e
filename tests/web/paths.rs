//! Paths of requests: what a policy compares, what a token names, and where a secret goes.

use host_support::server::{Server, answer};
use syscap::format::{Rights, Root, RootedPath, Rule, Scope};
use syscap::policy::Policy;
use syscap::prelude::*;

use crate::web::world::{call, local, world};

fn policy(constraints: &str) -> Policy {
    Policy::from_json(format!(r#"{{"v": 1, "constraints": [{constraints}]}}"#).as_bytes()).unwrap()
}

fn constraint(id: &str, effect: &str, when: &str) -> String {
    format!(
        r#"{{"id": "{id}", "effect": "{effect}", "subject": {{"tool_id": "http_request"}},
            "when": {when}, "on_fail": "block", "reason": "A test."}}"#
    )
}

const ALL: &str = r#"{"op": "all", "args": []}"#;

/// Forms of one path: servers read each as `admin/delete`, or some do.
const FORMS: [&str; 14] = [
    "/admin/delete",
    "/adm%69n/delete",
    "/admin/delete?",
    "/admin/delete?x=1",
    "/admin//delete",
    "//admin/delete/",
    "/admin/delete#x",
    "/admin/delete/now",
    "/admin%2fdelete",
    "/admin%5cdelete",
    "/admin;a=b/delete",
    "/admin/delete;a",
    "/adm%2569n/delete",
    "/%61%64%6d%69%6e/%64elete",
];

fn reached(session: &Session, paths: &[&str]) -> Vec<String> {
    let server = Server::saying(answer("200 OK", "text/plain", "x"));
    for path in paths {
        let url = server.url(path);
        call(session, "http_request", &format!(r#"{{"url": "{url}"}}"#));
    }
    server.seen().iter().map(|seen| seen.line().split(' ').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn a_denied_path_is_denied_in_every_form() {
    let world = world();
    let within = r#"{"op": "within", "args": ["args.url_path", "url/admin/delete"]}"#;
    let deny = constraint("no-admin", "deny", within);
    world.rt.set_policy(policy(&format!("{}, {deny}", constraint("all", "allow", ALL)))).unwrap();
    let session = world.local();
    assert_eq!(reached(&session, &FORMS), [""; 0]);
    let others =
        ["/", "/ok", "/admin", "/admin/deleted", "/a%20b", "/x/admin/delete", "/ADMIN/delete"];
    assert_eq!(reached(&session, &others), others);
    world.end();
}

#[test]
fn an_allowed_path_is_allowed_in_the_forms_that_have_one_reading() {
    let world = world();
    let within = r#"{"op": "within", "args": ["args.url_path", "url/public"]}"#;
    world.rt.set_policy(policy(&constraint("public", "allow", within))).unwrap();
    let session = world.local();
    let fine = ["/public", "/public/", "/public/a?b=/admin", "/p%75blic//a", "/public/a%20b"];
    assert_eq!(reached(&session, &fine), fine);
    let not = ["/", "/publicly", "/public%2f..%2fadmin", "/public/%2e%2e/admin", "/public;/admin"];
    assert_eq!(reached(&session, &not), [""; 0]);
    assert_eq!(reached(&session, &["/public%2fa", "/PUBLIC/a"]), [""; 0]);
    world.end();
}

#[test]
fn a_tool_that_is_set_by_path_needs_a_token_that_names_it() {
    let world = world();
    let server = Server::saying(answer("200 OK", "text/plain", "x"));
    let methods = r#""allowed_methods": ["GET", "POST"]"#;
    world.set("plain", &format!("{{{methods}}}"));
    world.set("api", &format!(r#"{{{methods}, "by_path": true}}"#));
    let scope = |paths: &[(&str, Rights)]| {
        let rule = |(text, rights): &(&str, Rights)| {
            let names = text.split('/').filter(|name| !name.is_empty());
            let path = RootedPath::new(Root::named("url").unwrap(), names).unwrap();
            Rule { path, rights: *rights }
        };
        Scope::paths(paths.iter().map(rule)).unwrap()
    };
    let without = world.session(local(&["plain", "api"]));
    let v1 = scope(&[("v1", Rights::READ.union(Rights::WRITE)), ("v1/admin", Rights::READ)]);
    let with = world.session(local(&["api"]).scope("url_path", v1));
    let asks = |session: &Session, tool: &str, method: &str, path: &str| {
        let url = server.url(path);
        let args = format!(r#"{{"url": "{url}", "method": "{method}"}}"#);
        match call(session, tool, &args).reason() {
            // The policy asks a person of what the token permits.
            Some(Reason::Asked) => None,
            reason => reason,
        }
    };
    assert_eq!(asks(&without, "plain", "GET", "/v1/a"), None);
    assert_eq!(asks(&without, "api", "GET", "/v1/a"), Some(Reason::OutOfScope));
    for (method, path, reason) in [
        ("GET", "/v1", None),
        ("GET", "/v1/a?q", None),
        ("POST", "/v1/a", None),
        ("GET", "/v1/admin/x", None),
        ("POST", "/v1/admin/x", Some(Reason::OutOfScope)),
        ("POST", "/v1/adm%69n/x", Some(Reason::OutOfScope)),
        ("GET", "/v2", Some(Reason::OutOfScope)),
        ("GET", "/v11", Some(Reason::OutOfScope)),
        ("GET", "/v1/a%2fb", Some(Reason::BadArgument)),
        ("GET", "/v1/a;b", Some(Reason::BadArgument)),
    ] {
        assert_eq!(asks(&with, "api", method, path), reason, "{method} {path}");
    }
    world.end();
}

/// A secret of a path goes to what lies there, and nowhere else on its server.
#[test]
fn a_secret_may_have_a_path() {
    let world = world();
    let server = Server::saying(answer("200 OK", "text/plain", "x"));
    let secrets = world.secrets();
    secrets.set("desk", "Token0123456789", &[&server.url("/v2")]).unwrap();
    world.set("desk", r#"{"secrets": [{"secret": "desk", "header": "X-Key"}]}"#);
    let session = world.session(local(&["desk"]));
    for path in ["/v2/a", "/v2", "/v21", "/admin", "/v2%2f..%2fadmin"] {
        call(&session, "desk", &format!(r#"{{"url": "{}"}}"#, server.url(path)));
    }
    let seen = server.seen();
    let sent: Vec<(&str, bool)> = seen
        .iter()
        .map(|seen| (seen.line().split(' ').nth(1).unwrap(), seen.header("x-key").is_some()))
        .collect();
    assert_eq!(sent, [("/v2/a", true), ("/v2", true), ("/v21", false), ("/admin", false)]);
    world.end();
}
