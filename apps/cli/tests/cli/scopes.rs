//! The scopes that the documentation and the help name: each is granted as it is written, and the
//! call for which it is written is not refused for want of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli::support::{TestHome, run, run_with};
use crate::cli::web::server;

/// A grant as it is documented, and calls by it.
struct Documented {
    tools: &'static [&'static str],
    scopes: &'static [&'static str],
    /// A tool, its arguments, and whether the scopes permit what they name.
    calls: Vec<(&'static str, Value, Permitted)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permitted {
    Yes,
    /// The argument that names what the scopes don't permit.
    But(&'static str),
}

use Permitted::{But, Yes};

fn draft(to: &str) -> Value {
    json!({"to": to, "subject": "hello", "body": "hello"})
}

fn documented() -> Vec<Documented> {
    requests().into_iter().chain(others()).collect()
}

fn requests() -> Vec<Documented> {
    let get = |url: &str| json!({"url": url});
    vec![
        Documented {
            tools: &["http_request"],
            scopes: &["host=api.example.com"],
            // What asks for no name: the port is what is missing.
            calls: vec![
                ("http_request", get("https://api.example.com:9/v1/status"), But("port")),
                ("http_request", get("https://example.com/v1/status"), But("url")),
            ],
        },
        Documented {
            tools: &["api"],
            scopes: &["url_path=/api/v2", "host=example.com"],
            calls: vec![
                ("api", get("https://example.com:9/api/v2/x"), But("port")),
                ("api", get("https://example.com/api/v3"), But("url_path")),
            ],
        },
        Documented {
            tools: &["http_request"],
            scopes: &["host=example.com"],
            calls: vec![
                ("http_request", get("https://example.com:9/"), But("port")),
                ("http_request", get("https://api.example.com/"), But("url")),
            ],
        },
        Documented {
            tools: &["http_request"],
            scopes: &[
                "host=localhost",
                "address=127.0.0.1",
                "address=::1",
                "port=8080",
                "scheme=http",
            ],
            calls: vec![
                ("http_request", get("http://localhost:8080/"), Yes),
                ("http_request", get("http://127.0.0.1:8080/"), Yes),
                ("http_request", get("http://localhost:8081/"), But("port")),
                ("http_request", get("http://127.0.0.2:8080/"), But("url")),
            ],
        },
        Documented {
            tools: &["http_request"],
            scopes: &["host=*.example.com", "port=8443", "address=10.1.0.0/16", "scheme=http"],
            calls: vec![
                ("http_request", get("https://api.example.com:8444/"), But("port")),
                ("http_request", get("http://10.2.0.1:8443/"), But("url")),
                ("http_request", get("http://10.1.0.1:8444/"), But("port")),
            ],
        },
    ]
}

fn others() -> Vec<Documented> {
    let git = |program: &str| json!({"argv": [program, "--version"]});
    let sends = |route: &str, purpose: &str| {
        let payload = "hello";
        json!({"route": route, "purpose": purpose, "payload_ref": payload})
    };
    let note = |to: &str| json!({"recipients": [to], "kind": "task", "text": "find the hives"});
    vec![
        Documented {
            tools: &["email.draft"],
            scopes: &["recipient=bob@example.com", "recipient_host=*.example.org"],
            calls: vec![
                ("email.draft", draft("bob@example.com"), Yes),
                ("email.draft", draft("ann@mail.example.org"), Yes),
                ("email.draft", draft("eve@example.com"), But("to")),
            ],
        },
        Documented {
            tools: &["net.egress"],
            scopes: &["route=desk", "purpose=support"],
            calls: vec![
                ("net.egress", sends("desk", "support"), Yes),
                ("net.egress", sends("desk", "sales"), But("purpose")),
            ],
        },
        Documented {
            tools: &["shell"],
            scopes: &["program=git", "program=cargo"],
            calls: vec![
                ("shell", git("git"), Yes),
                ("shell", git("cargo"), Yes),
                ("shell", git("make"), But("argv")),
            ],
        },
        Documented {
            tools: &["shell_script"],
            scopes: &["program=sh", "program=make", "does=unknown"],
            calls: vec![("shell_script", json!({"script": "make"}), Yes)],
        },
        Documented {
            tools: &["org.send_message"],
            scopes: &["outbox=team/scout"],
            calls: vec![
                ("org.send_message", note("team/scout"), Yes),
                ("org.send_message", note("team/other"), But("recipients")),
            ],
        },
        Documented {
            tools: &["vecdb.query"],
            scopes: &["collection=acme/docs"],
            calls: vec![
                ("vecdb.query", json!({"collection": "acme/docs", "embedding": [1.0]}), Yes),
                (
                    "vecdb.query",
                    json!({"collection": "acme/x", "embedding": [1.0]}),
                    But("collection"),
                ),
            ],
        },
    ]
}

/// The scopes that the documents name, without those that stand for any (`host=..`).
fn named() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "md");
    let pages = docs.chain([root.join("README.md")]).filter(is_page);
    let help = run(["token", "issue", "--help"]).fine().out;
    let mut named = BTreeSet::new();
    for text in pages.map(|page| fs::read_to_string(page).unwrap()).chain([help]) {
        let words: Vec<&str> = text.split_whitespace().collect();
        for pair in words.windows(2).filter(|pair| pair[0].ends_with("--scope")) {
            let rest = pair[1].trim_start_matches('\'');
            let end = rest.find(['\'', '`', ')', ',']).unwrap_or(rest.len());
            let word = rest[..end].trim_end_matches('.');
            if word.split_once('=').is_some_and(|(_, value)| !value.is_empty()) {
                named.insert(word.to_owned());
            }
        }
    }
    named.retain(|scope| !scope.contains("DIMENSION=VALUE"));
    named
}

#[test]
fn documented_scope_permits_the_documented_call() {
    let port = server().port;
    let home = TestHome::new();
    let path = home.path();
    let routes = json!({"routes": {"desk": {
        "url": format!("http://127.0.0.1:{port}/in"), "addresses": ["127.0.0.1/32"],
    }}});
    run_with(["http", "set", &path, "net.egress"], routes.to_string().as_bytes());
    run_with(["http", "set", &path, "api"], br#"{"by_path": true}"#).fine();
    let all = documented();
    for Documented { tools, scopes, calls } in &all {
        let mut flags: Vec<&str> = tools.iter().flat_map(|tool| ["--tool", tool]).collect();
        flags.extend(["--read", "workspace", "--write", "workspace"]);
        flags.extend(scopes.iter().flat_map(|scope| ["--scope", scope]));
        let token = home.token("a", &flags);
        for (tool, args, permitted) in calls {
            let line = json!({"tool_id": tool, "args": args}).to_string();
            let result = home.call("a", &token, line.as_bytes()).remove(0);
            let refused = match result["error"]["reason"].as_str().unwrap_or_default() {
                "out_of_scope" => result["error"]["field"].as_str().unwrap().to_owned(),
                "not_compared" | "bad_argument" | "unknown_argument" | "not_granted" => {
                    panic!("{line}: {result}")
                }
                _ => String::new(),
            };
            let wanted = match permitted {
                Yes => "",
                But(argument) => argument,
            };
            assert_eq!(refused, wanted, "{scopes:?} {line}: {result}");
        }
    }
    let tried: BTreeSet<&str> = all.iter().flat_map(|one| one.scopes).copied().collect();
    let named = named();
    let untried: Vec<&String> =
        named.iter().filter(|scope| !tried.contains(scope.as_str())).collect();
    assert!(named.len() >= 14, "{named:?}");
    assert!(untried.is_empty(), "no call is made for {untried:?}");
}
