//! `http`, `secret`, and calls that go by them.

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::thread;

use host_support::server::Server;
use serde_json::{Value, json};

use crate::cli::support::{Serving, TestHome, reason, run, run_with, syscap};

/// A server that answers `ok`.
pub(crate) fn server() -> Server {
    Server::saying("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
}

const SCOPES: [&str; 6] =
    ["--scope", "address=127.0.0.1", "--scope", "scheme=http", "--scope", "port=1-65535"];

fn call(home: &TestHome, token: &str, tool: &str, args: &Value) -> Value {
    let line = json!({"tool_id": tool, "args": args}).to_string();
    home.call("a", token, line.as_bytes()).remove(0)
}

#[test]
fn a_tool_is_set_called_shown_and_removed() {
    let home = TestHome::new();
    let server = server();
    let port = server.port;
    let settings = json!({
        "base_url": format!("http://127.0.0.1:{port}/v1"),
        "title": "Tickets", "description": "Reads tickets.",
        "secrets": [{"secret": "desk", "header": "X-Api-Key"}],
    });
    let file = home.file("tickets.json", &settings.to_string());
    let set = run(["http", "set", &home.path(), "tickets", &file, "--json"]);
    // What is still missing is said beside it.
    for said in ["syscap secret set", "--scope address=127.0.0.1 --scope port="] {
        assert!(set.err.contains(said), "{}", set.err);
    }
    let set = set.one();
    assert_eq!(set["tool"], "tickets");
    let origin = format!("http://127.0.0.1:{port}");
    let secret = ["secret", "set", &home.path(), "desk", "--origin", &origin];
    run_with(secret, b"Value-of-0123456789\n").fine();
    // A secret of another server's is no secret of the tool's.
    let other = ["secret", "set", &home.path(), "other", "--origin", "https://b.test"];
    run_with(other, b"Value-of-9876543210\n").fine();
    let [own, wrong] = ["desk", "other"].map(|secret| {
        let mut settings = settings.clone();
        settings["secrets"][0]["secret"] = json!(secret);
        let file = home.file("again.json", &settings.to_string());
        run(["http", "set", &home.path(), "again", &file]).err
    });
    assert!(wrong.contains("https://b.test") && !own.contains(&origin), "{wrong}{own}");
    run(["http", "rm", &home.path(), "again"]).fine();
    run(["secret", "rm", &home.path(), "other"]).fine();
    let listed = run(["secret", "list", &home.path(), "--json"]).fine().one();
    assert_eq!(listed, json!({"secret": "desk", "origins": [origin]}));
    let flags = [&["--tool", "tickets"][..], &SCOPES[..]].concat();
    let token = home.token("a", &flags);
    let result = call(&home, &token, "tickets", &json!({"path": "7"}));
    assert_eq!(result["result"]["data"], "ok", "{result}");
    let head = server.seen()[0].head.clone();
    assert!(head.starts_with("GET /v1/7 HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains("x-api-key: value-of-0123456789\r\n"), "{head}");
    let shown: Value =
        serde_json::from_str(&run(["http", "show", &home.path(), "tickets"]).fine().out).unwrap();
    // What is not below the base is not called, where nothing else was said.
    let mut bounded = settings.clone();
    bounded["anywhere"] = json!(false);
    assert_eq!(shown, bounded);
    let beside = json!({"url": format!("http://127.0.0.1:{port}/admin")});
    let refused = call(&home, &token, "tickets", &beside);
    assert_eq!((reason(&refused), server.seen().len()), ("bad_argument", 1));
    let below = json!({"url": format!("http://127.0.0.1:{port}/v1/8")});
    assert_eq!(call(&home, &token, "tickets", &below)["result"]["data"], "ok");
    // On record by the operator's signature.
    let log = home.log();
    let record = &log[usize::try_from(set["record"].as_u64().unwrap()).unwrap()];
    assert_eq!(record["kind"], "tools");
    assert!(!log.iter().any(|record| record.to_string().contains("0123456789")));
    run(["secret", "rm", &home.path(), "desk"]).fine();
    let refused = call(&home, &token, "tickets", &json!({"path": "7"}));
    assert_eq!(reason(&refused), "no_secret");
    run(["http", "rm", &home.path(), "tickets"]).fine();
    let refused = call(&home, &token, "tickets", &json!({"path": "7"}));
    assert_eq!(reason(&refused), "unknown_tool");
    assert_eq!(home.verify(), 0);
}

/// While another process holds the home.
#[test]
fn a_tool_is_set_beside_a_holder() {
    let home = TestHome::new();
    let server = server();
    let port = server.port;
    let serving = Serving::of(&home.path(), &[]);
    let settings = json!({"allowed_methods": ["GET"]}).to_string();
    run_with(["http", "set", &home.path(), "look", "-"], settings.as_bytes()).fine();
    let token = home.token("a", &[&["--tool", "look"][..], &SCOPES[..]].concat());
    let url = format!("http://127.0.0.1:{port}/x");
    assert_eq!(call(&home, &token, "look", &json!({"url": url}))["status"], "ok");
    run(["http", "rm", &home.path(), "look"]).fine();
    assert_eq!(reason(&call(&home, &token, "look", &json!({"url": url}))), "unknown_tool");
    drop(serving);
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn http_set_names_the_fault_in_one_line() {
    let home = TestHome::new();
    let set = |tool: &str, settings: &str| {
        run_with(["http", "set", &home.path(), tool, "-"], settings.as_bytes())
    };
    for (settings, said) in [
        (r#"{"base_urls": "x"}"#, "base_urls: one of: "),
        (r#"{"default_headers": {"Authorization": "Bearer x"}}"#, "syscap secret set"),
        ("{", "standard input"),
        (r#"{"timeout_ms": 10, "timeout_ms": 20}"#, "standard input"),
    ] {
        let failed = set("t", settings).failed(2);
        assert!(failed.err.contains(said), "{}", failed.err);
    }
    assert!(set("fs.read", "{}").failed(2).err.contains("another tool"));
    assert!(set("t", r#"{"auto_approve": true}"#).err.contains("params.auto_approve"));
    run(["http", "rm", &home.path(), "none"]).failed(2);
    run(["http", "show", &home.path(), "fs.read"]).failed(2);
    assert_eq!(run(["http", "show", &home.path(), "http_request"]).fine().out, "{}\n");
    let secret = |name: &str, origin: &str, value: &[u8]| {
        run_with(["secret", "set", &home.path(), name, "--origin", origin], value)
    };
    let value = b"0123456789abc\n";
    secret("Bad", "https://a.test", value).failed(2);
    secret("a", "a.test", value).failed(2);
    secret("a", "https://a.test", b"short\n").failed(2);
    secret("a", "https://a.test", b"").failed(2);
    assert!(!secret("a", "https://a.test", b"sh\x00ort-0123456789\n").err.contains("0123456789"));
    run(["secret", "rm", &home.path(), "none"]).failed(2);
    run(["secret", "list", &home.text_beside("nowhere")]).failed(4);
    assert_eq!(run(["secret", "list", &home.path()]).fine().out, "");
}

/// No variable of the environment leads a call elsewhere, or says whom to believe.
#[test]
fn http_calls_ignore_the_environment() {
    let home = TestHome::new();
    let (server, proxy) = (server(), server());
    let port = server.port;
    let token = home.token("a", &[&["--tool", "http_request"][..], &SCOPES[..]].concat());
    let line = json!({"tool_id": "http_request",
        "args": {"url": format!("http://127.0.0.1:{port}/")}});
    let mut command = syscap();
    let through = proxy.url("");
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(name, &through).env(name.to_lowercase(), &through);
    }
    let keys = home.text_beside("tls-keys");
    command.env("NO_PROXY", "").env("SSLKEYLOGFILE", &keys).env("SSL_CERT_FILE", "/nowhere");
    command.args(["call", &home.path(), "--agent", "a", "--token", &token]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(line.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["result"]["data"], "ok", "{result}");
    assert_eq!((server.seen().len(), proxy.seen().len()), (1, 0));
    assert!(!home.beside("tls-keys").exists());
}

/// A name of the real resolver's, in a network of its own, whose server of DNS changes its mind.
#[test]
fn real_names_are_judged_too() {
    const INSIDE: &str = "SYSCAP_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_none() {
        let itself = std::env::current_exe().unwrap();
        let resolv = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(resolv.path(), "nameserver 127.0.0.1\nsearch inner.test\n").unwrap();
        let hosts = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(hosts.path(), "127.0.0.1 hosts.test\n").unwrap();
        let script = "ip link set lo up && mount --bind \"$1\" /etc/resolv.conf && \
                      mount --bind \"$2\" /etc/hosts && shift 2 && exec \"$@\"";
        let inside = std::process::Command::new("unshare")
            .args(["--net", "--mount", "sh", "-c", script, "sh"])
            .args([resolv.path(), hosts.path()])
            .arg(itself)
            .args(["--exact", "cli::web::real_names_are_judged_too", "--nocapture"])
            .env(INSIDE, "1")
            .output();
        match inside {
            Ok(output) if output.status.success() => {
                let text = String::from_utf8_lossy(&output.stdout);
                assert!(text.contains("1 passed"), "{text}");
            }
            Ok(output) if String::from_utf8_lossy(&output.stderr).contains("unshare") => {
                println!("skipped: no network namespace can be made here");
            }
            Ok(output) => panic!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            ),
            Err(_) => println!("skipped: no unshare here"),
        }
        return;
    }
    let asked = dns();
    let server = server();
    let port = server.port;
    let home = TestHome::new();
    let flags = [
        &["--tool", "http_request", "--scope", "host=*.test"][..],
        &SCOPES[2..],
        &["--scope", "address=127.0.0.1"],
    ]
    .concat();
    let token = home.token("a", &flags);
    let ask = |name: &str| {
        call(&home, &token, "http_request", &json!({"url": format!("http://{name}:{port}/")}))
    };
    assert_eq!(ask("here.test")["result"]["data"], "ok");
    assert_eq!(reason(&ask("both.test")), "forbidden_address");
    assert_eq!(reason(&ask("meta.test")), "forbidden_address");
    assert_eq!(reason(&ask("none.test")), "unreachable");
    // What stands for another name, what has an address of IPv6 alone, and the machine's own list.
    assert_eq!(reason(&ask("alias.test")), "forbidden_address");
    assert_eq!(reason(&ask("six.test")), "forbidden_address");
    assert_eq!(reason(&ask("hosts.test")), "unreachable");
    // First one address, then another: the first is judged and used.
    assert_eq!(reason(&ask("turns.test")), "forbidden_address");
    assert_eq!(server.seen().len(), 1);
    // No name is completed by the search list.
    let names = asked.lock().unwrap().clone();
    assert!(names.iter().all(|name| !name.ends_with("inner.test")), "{names:?}");
    assert!(names.iter().any(|name| name == "none.test"), "{names:?}");
}

/// A server of DNS: A records by name; `turns.test` answers another way each time, `alias.test`
/// stands for `meta.test`, and `six.test` is `::1`.
fn dns() -> Arc<Mutex<Vec<String>>> {
    let socket = std::net::UdpSocket::bind("127.0.0.1:53").unwrap();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&asked);
    thread::spawn(move || {
        let (mut buffer, mut turns) = ([0; 512], 0);
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let query = &buffer[..length];
            let (mut name, mut at) = (Vec::new(), 12);
            while query[at] != 0 {
                let end = at + 1 + usize::from(query[at]);
                name.push(String::from_utf8_lossy(&query[at + 1..end]).into_owned());
                at = end;
            }
            let (name, kind) = (name.join("."), query[at + 2]);
            kept.lock().unwrap().push(name.clone());
            let addresses: &[[u8; 4]] = match (&*name, kind) {
                ("here.test", 1) => &[[127, 0, 0, 1]],
                ("both.test", 1) => &[[127, 0, 0, 1], [10, 0, 0, 1]],
                ("meta.test", 1) => &[[169, 254, 169, 254]],
                ("turns.test", 1) => {
                    turns += 1;
                    if turns == 1 { &[[10, 9, 8, 7]] } else { &[[127, 0, 0, 1]] }
                }
                _ => &[],
            };
            let known = ["here", "both", "meta", "turns", "alias", "six"];
            let known = known.iter().any(|first| name == format!("{first}.test"));
            let mut answer = query[..at + 5].to_vec();
            answer[2] = 0x81;
            answer[3] = if known { 0x80 } else { 0x83 };
            answer[6..12].fill(0);
            let mut records: Vec<Vec<u8>> = addresses
                .iter()
                .map(|address| [&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4], &address[..]].concat())
                .collect();
            let meta = b"\x04meta\x04test\x00";
            if (&*name, kind) == ("alias.test", 1) {
                let alias = [0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 0, 0, 11];
                records.push([&alias[..], meta].concat());
                let place = [0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 169, 254, 169, 254];
                records.push([&meta[..], &place].concat());
            }
            if (&*name, kind) == ("six.test", 28) {
                let place = [0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 0, 0, 16];
                let address = std::net::Ipv6Addr::LOCALHOST.octets();
                records.push([&place[..], &address].concat());
            }
            answer[7] = u8::try_from(records.len()).unwrap();
            answer.extend(records.concat());
            socket.send_to(&answer, from).unwrap();
        }
    });
    asked
}

/// Killed at any point a rotation leaves every secret readable, and the next one goes on.
#[test]
fn a_rotation_of_the_secrets_key_that_is_killed_loses_none() {
    let home = TestHome::new();
    let names = ["a", "b", "c", "d"];
    for name in names {
        let words = ["secret", "set", &home.path(), name, "--origin", "https://a.test"];
        run_with(words, b"Token0123456789").fine();
    }
    let open = || {
        let listed = run(["secret", "list", &home.path(), "--json"]).fine().json();
        listed.iter().filter(|one| one["origins"].is_array()).count()
    };
    for n in 0..12 {
        let mut child = syscap()
            .args(["secret", "rotate", &home.path()])
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(n * 2));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(open(), names.len(), "after {} ms", n * 2);
    }
    let said = run(["secret", "rotate", &home.path(), "--json"]).fine().one();
    assert_eq!((&said["sealed"], open()), (&serde_json::json!(4), names.len()));
}
