//! Servers that lie, stall and flood; callers who race for a budget.

use std::io::{Read as _, Write};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use host_support::server::{Deaf, Sent, Server, answer};
use syscap::format::{Item, TxOutcome};
use syscap::prelude::*;

use crate::web::world::{call, flag, get, local, text, world};

/// Writes until nobody reads any more.
fn flood(stream: &mut dyn Write, part: &[u8]) {
    while stream.write_all(part).is_ok() {}
}

fn quick(world: &crate::web::world::World) -> Session {
    world.set("quick", r#"{"timeout_ms": 400, "allowed_methods": ["GET", "POST"]}"#);
    world.session(local(&["quick"]))
}

#[test]
fn an_answer_without_end_is_cut() {
    let world = world();
    let session = world.local();
    let chunked = Server::new(|_, stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        flood(stream, b"8\r\nabcdefgh\r\n");
    });
    let closing = Server::new(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n").unwrap();
        flood(stream, &[b'x'; 4096]);
    });
    // Of which most is no body.
    let thin = Server::new(|_, stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        flood(stream, &b"1\r\nx\r\n".repeat(500));
    });
    for server in [chunked, closing, thin] {
        let result = get(&session, &server.url("/"));
        assert_eq!(flag(&result, "truncated"), Some(true));
        assert_eq!(text(&result, "data").unwrap().len(), 20_000);
        let used = result.receipt().used.get(Dimension::IngressBytes);
        assert!(used < 300_000, "{used}: no more than was set aside");
    }
    world.end();
}

/// Counted in characters, cut between them.
#[test]
fn long_body_is_cut_between_characters() {
    let world = world();
    world.set("small", r#"{"max_response_chars": 5}"#);
    let session = world.session(local(&["small"]));
    for (body, kept) in [
        ("\u{1f600}".repeat(9), "\u{1f600}".repeat(5)),
        ("\u{e9}".repeat(50_000), "\u{e9}".repeat(5)),
        ("abcde".to_owned(), "abcde".to_owned()),
    ] {
        let server = Server::saying(answer("200 OK", "text/plain", &body));
        let args = format!(r#"{{"url": "{}"}}"#, server.url("/"));
        let result = call(&session, "small", &args);
        assert_eq!(text(&result, "data"), Some(kept.clone()));
        assert_eq!(flag(&result, "truncated"), Some(body != kept));
    }
    // JSON that is cut is no JSON.
    let server = Server::saying(answer("200 OK", "application/json", "[1,2,3,4]"));
    let result = call(&session, "small", &format!(r#"{{"url": "{}"}}"#, server.url("/")));
    assert_eq!(text(&result, "format").as_deref(), Some("text"));
    assert_eq!(text(&result, "data").as_deref(), Some("[1,2,"));
    world.end();
}

/// What would grow when it is decoded is not decoded.
#[test]
fn encoded_body_is_refused() {
    let world = world();
    let session = world.local();
    for coding in ["gzip", "br", "zstd", "deflate", "gzip, gzip", "x"] {
        let said = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: 3\r\n\r\nabc"
        );
        let refused = get(&session, &Server::saying(said).url("/"));
        assert_eq!(refused.reason(), Some(Reason::BadResponse), "{coding}");
    }
    for coding in ["gzip, chunked", "gzip", "chunked, chunked"] {
        let said =
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
        let refused = get(&session, &Server::saying(said).url("/"));
        assert_eq!(refused.reason(), Some(Reason::BadResponse), "{coding}");
    }
    world.end();
}

#[test]
fn malformed_answer_is_an_error() {
    let world = world();
    let session = world.local();
    let long = "x".repeat(100_000);
    let many: String = (0..10_000).map(|n| format!("X-{n}: y\r\n")).collect();
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".repeat(5_000);
    for (what, said) in [
        ("nothing", String::new()),
        ("no HTTP", "SSH-2.0-OpenSSH_9.2\r\n".to_owned()),
        ("another version", "HTTP/9.9 200 OK\r\n\r\n".to_owned()),
        ("a status that is none", "HTTP/1.1 abc OK\r\n\r\n".to_owned()),
        ("half a head", "HTTP/1.1 200 OK\r\nContent-Le".to_owned()),
        ("a long header", format!("HTTP/1.1 200 OK\r\nX: {long}\r\n\r\n")),
        ("many headers", format!("HTTP/1.1 200 OK\r\n{many}\r\n")),
        ("early answers", interim),
        ("a short body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc".to_owned()),
        ("no chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_owned()),
        (
            "chunks that end",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab".to_owned(),
        ),
        (
            "two lengths",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 3\r\n\r\nabc".to_owned(),
        ),
        ("a huge length", format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\nabc", u64::MAX)),
    ] {
        let result = get(&session, &Server::saying(said).url("/"));
        let fine = matches!(
            result.reason(),
            Some(Reason::BadResponse | Reason::Unreachable | Reason::OverHold)
        );
        // Of two lengths one is taken: then no more than that is read.
        let cut = what == "two lengths" && result.reason().is_none();
        assert!(fine || cut, "{what}: {:?}", result.reason());
    }
    // What stands behind an answer is nobody's.
    let behind =
        [&answer("200 OK", "text/plain", "one")[..], b"HTTP/1.1 200 OK\r\n\r\ntwo"].concat();
    let result = get(&session, &Server::saying(behind).url("/"));
    assert_eq!(text(&result, "data").as_deref(), Some("one"));
    let upgrade = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x01\x02";
    let result = get(&session, &Server::saying(upgrade).url("/"));
    assert!(result.reason().is_some() || flag(&result, "ok") == Some(false));
    // The kernel goes on.
    let server = Server::saying(answer("200 OK", "text/plain", "x"));
    assert_eq!(get(&session, &server.url("/")).reason(), None);
    world.end();
}

/// However slowly somebody speaks or listens: the call's time is one.
#[test]
fn slow_server_gets_no_more_time() {
    let world = world();
    let session = quick(&world);
    let drip = |first: &'static str| {
        Server::new(move |_, stream| {
            stream.write_all(first.as_bytes()).unwrap();
            while stream.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(50));
            }
        })
    };
    let servers = [
        drip("HTTP/1.1 200 OK\r\nX: "),
        drip("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"),
        Server::new(|_, _| thread::sleep(Duration::from_secs(20))),
    ];
    for server in servers {
        let refused = call(&session, "quick", &format!(r#"{{"url": "{}"}}"#, server.url("/")));
        assert_eq!(refused.reason(), Some(Reason::Unreachable));
        assert_eq!(refused.tx_outcome(), TxOutcome::NoOp);
        let used = refused.receipt().used.get(Dimension::WallUs);
        assert!(used < 2_400_000, "{used}: within what was set aside");
    }
    world.end();
}

/// What was sent may have been done.
#[test]
fn a_write_without_an_answer_is_unknown() {
    let world = world();
    let session = quick(&world);
    let silent = Server::of(|mut stream, seen| {
        let mut sent = [0; 16];
        stream.read_exact(&mut sent).unwrap();
        seen.lock().unwrap().push(Sent::default());
    });
    let args = |url: &str| format!(r#"{{"url": "{url}", "method": "POST", "body": "x"}}"#);
    let approved = |url: &str| {
        let asked = call(&session, "quick", &args(url));
        let once = syscap::format::ApprovalAnswer::Once;
        world.rt.answer(asked.ask().unwrap(), once, None).unwrap();
        call(&session, "quick", &args(url))
    };
    let result = approved(&silent.url("/"));
    assert_eq!(
        (result.reason(), result.tx_outcome()),
        (Some(Reason::BadResponse), TxOutcome::Unknown)
    );
    assert_eq!(result.retry(), Some(Retry::Ask));
    // Where nobody answers at all nothing was sent.
    let deaf = Deaf::new();
    let result = approved(&deaf.url());
    assert_eq!(
        (result.reason(), result.tx_outcome()),
        (Some(Reason::Unreachable), TxOutcome::NoOp)
    );
    world.end();
}

#[test]
fn callers_who_race_overspend_nothing() {
    let world = world();
    let body = "x".repeat(10_000);
    let server = Server::saying(answer("200 OK", "text/plain", &body));
    // Room for some of them.
    let budget = Budget::standard()
        .with(Dimension::IngressBytes, 900_000)
        .with(Dimension::EgressBytes, 900_000)
        .with(Dimension::Concurrent, 64)
        .with(Dimension::WallUs, 1 << 40);
    let session = world.session(local(&["http_request"]).budget(budget));
    let (barrier, url) = (Barrier::new(16), server.url("/"));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                barrier.wait();
                for _ in 0..8 {
                    let result = get(&session, &url);
                    let fine = matches!(result.reason(), None | Some(Reason::OverBudget));
                    assert!(fine, "{:?}", result.reason());
                }
            });
        }
    });
    let came: u64 = server.seen().iter().map(|sent| sent.head.len() as u64).sum();
    let view = world.rt.view().unwrap();
    let token = view.token(session.token()).unwrap();
    let left = token.left.get(Dimension::EgressBytes);
    assert_eq!(900_000 - left, came, "each byte that was sent is counted");
    assert!(server.seen().len() >= 4);
    world.end();
}

/// A policy that leaves less of a result gets less, and not an error.
#[test]
fn a_smaller_result_is_made_where_the_policy_says_so() {
    use syscap::policy::Policy;
    let dir = tempfile::tempdir().unwrap();
    let document = br#"{"v": 1, "constraints": [{"id": "short", "effect": "allow", "subject": null,
        "when": {"op": "all", "args": []}, "on_fail": "block", "reason": "short answers",
        "obligations": [{"type": "result_cap", "bytes": 16384}]}], "params": {}}"#;
    let policy = Policy::from_json(document).unwrap();
    let home = dir.path().join("home");
    let rt = Options::new().policy(policy).create(&home).unwrap();
    let session = rt.session("a", rt.issue(local(&["http_request"])).unwrap()).unwrap();
    let server = Server::saying(answer("200 OK", "text/plain", &"x".repeat(20_000)));
    let result = get(&session, &server.url("/"));
    assert_eq!(flag(&result, "truncated"), Some(true));
    let length = result.value().unwrap().get("data").and_then(Item::as_text).unwrap().len();
    assert!((1..=16_384).contains(&length), "{length}");
    rt.close().unwrap();
}
