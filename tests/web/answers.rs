//! What an answer has beside its head and body, and what stands before and behind it.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use host_support::server::{Sent, Server, answer, read};
use syscap::{format::Item, prelude::*};

use crate::web::world::{get, local, text, uint, world};

/// What follows the last chunk is no header, no part of the body, and leads nowhere.
#[test]
fn trailers_are_nothing() {
    let world = world();
    let session = world.local();
    let chunked = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTrailer: Location, X\r\n\
        Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX: y\r\nContent-Encoding: gzip\r\n\
        Content-Length: 99\r\nLocation: http://127.0.0.1:1/next\r\n\r\n";
    let server = Server::saying(chunked);
    let result = get(&session, &server.url("/"));
    assert_eq!(text(&result, "data").as_deref(), Some("body"));
    assert_eq!((text(&result, "redirect"), uint(&result, "status")), (None, Some(200)));
    // Without an end they are bounded by what was set aside.
    let flood = Server::new(|_, stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\
            Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        while stream.write_all(b"X-Trailer: abcdefghijklmnopqrstuvwxyz\r\n").is_ok() {}
    });
    let result = get(&session, &flood.url("/"));
    let ended = matches!(result.reason(), None | Some(Reason::BadResponse | Reason::OverHold));
    assert!(ended, "{:?}", result.reason());
    assert!(result.receipt().used.get(Dimension::IngressBytes) < 400_000);
    world.end();
}

/// An early answer is no answer: nothing of it is shown, and what comes after it is the one that
/// was asked for. A leave to go on that nobody asked for is taken for a fault.
#[test]
fn an_early_answer_is_none() {
    let world = world();
    let session = world.local();
    for early in ["102 Processing", "103 Early Hints", "199 x", "100 Continue"] {
        let is_leave = early.starts_with("100");
        let early =
            format!("HTTP/1.1 {early}\r\nLocation: http://127.0.0.1:1/\r\nX-Early: yes\r\n\r\n");
        let said = [early.as_bytes(), &answer("200 OK", "text/plain", "late")].concat();
        let result = get(&session, &Server::saying(said).url("/"));
        if is_leave {
            assert_eq!(result.reason(), Some(Reason::BadResponse));
        } else {
            assert_eq!((uint(&result, "status"), text(&result, "redirect")), (Some(200), None));
            assert_eq!(text(&result, "data").as_deref(), Some("late"), "{early}");
        }
    }
    world.end();
}

/// A server that keeps its connections open, and says more on each than it was asked.
fn talkative(connections: &Arc<AtomicUsize>) -> Server {
    let connections = Arc::clone(connections);
    Server::of(move |mut stream: TcpStream, seen: &Mutex<Vec<Sent>>| {
        connections.fetch_add(1, Ordering::SeqCst);
        while let Some(sent) = read(&mut stream) {
            let path = sent.line().split(' ').nth(1).unwrap().to_owned();
            seen.lock().unwrap().push(sent);
            let own = answer("200 OK", "text/plain", &path);
            let planted = answer("200 OK", "text/plain", "planted");
            if stream.write_all(&[own, planted].concat()).is_err() {
                return;
            }
        }
    })
}

/// What stands behind an answer answers no later request, whoever makes it.
#[test]
fn no_connection_is_used_twice() {
    let world = world();
    let connections = Arc::default();
    let server = talkative(&connections);
    world.names.lead("a.test", &[&["127.0.0.1"]]);
    let (one, other) = (world.local(), world.local());
    for (session, path) in [(&one, "/1"), (&one, "/2"), (&other, "/3"), (&other, "/4")] {
        let result = get(session, &server.url(path));
        assert_eq!(text(&result, "data").as_deref(), Some(path));
        let by_name = get(session, &format!("http://a.test:{}{path}n", server.port));
        assert_eq!(text(&by_name, "data"), Some(format!("{path}n")));
    }
    assert_eq!((server.seen().len(), connections.load(Ordering::SeqCst)), (8, 8));
    // What has ended opens none either.
    world.rt.revoke(one.token()).unwrap();
    assert!(get(&one, &server.url("/5")).reason().is_some());
    assert_eq!(connections.load(Ordering::SeqCst), 8);
    world.end();
}

/// However it fails: nothing is tried again by itself.
#[test]
fn a_request_is_sent_once() {
    let world = world();
    let session = world.local();
    let connections: Arc<AtomicUsize> = Arc::default();
    let counted = |answer: &'static [u8]| {
        let connections = Arc::clone(&connections);
        Server::of(move |mut stream: TcpStream, seen: &Mutex<Vec<Sent>>| {
            connections.fetch_add(1, Ordering::SeqCst);
            let Some(sent) = read(&mut stream) else { return };
            seen.lock().unwrap().push(sent);
            stream.write_all(answer).unwrap_or_default();
        })
    };
    let answers: [&[u8]; 6] = [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 425 Too Early\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 429 Slow\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
    ];
    for (made, answer) in answers.into_iter().enumerate() {
        let server = counted(answer);
        get(&session, &server.url("/"));
        assert_eq!((server.seen().len(), connections.load(Ordering::SeqCst)), (1, made + 1));
    }
    world.end();
}

/// One reading of bytes: by the charset that is said where there is such, else as UTF-8; what has
/// neither stays bytes.
#[test]
fn body_without_charset_or_utf8_stays_bytes() {
    let world = world();
    let session = world.session(local(&["http_request"]));
    let said = |kind: &str, body: &[u8]| {
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n");
        get(&session, &Server::saying([head.as_bytes(), body].concat()).url("/"))
    };
    for (kind, body, shown) in [
        ("text/plain", &b"a\xff\xfeb"[..], "a\u{fffd}\u{fffd}b"),
        ("text/plain; charset=no-such", b"a\xc3\xa9", "a\u{e9}"),
        ("text/plain; charset=utf-7", b"+ADw-script", "+ADw-script"),
        ("text/plain; charset=\"utf-16le\"", b"a\0b", "a\u{fffd}"),
        ("text/plain; charset=utf-8; charset=utf-16le", b"ab", "ab"),
        ("text/plain", b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
        ("application/json", b"[\"\xff\"", "[\"\u{fffd}\""),
    ] {
        let result = said(kind, body);
        assert_eq!(text(&result, "data").as_deref(), Some(shown), "{kind} {body:?}");
    }
    for kind in ["application/octet-stream", "x", "image/png"] {
        let result = said(kind, b"a\xff");
        let bytes = result.value().unwrap().get("data").and_then(Item::as_byte_string);
        assert_eq!(bytes, Some(&b"a\xff"[..]), "{kind}");
    }
    world.end();
}

/// Parts of answers, in an order that nobody would choose.
const PARTS: [&[u8]; 24] = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.0 200\r\n",
    b"HTTP/1.1 304 Not Modified\r\n",
    b"HTTP/1.1 204 No Content\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 103 x\r\n\r\n",
    b"HTTP/2.0 200 OK\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: -1\r\n",
    b"Content-Length: 18446744073709551616\r\n",
    b"content-length : 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked, identity\r\n",
    b"Transfer-Encoding:\x0bchunked\r\n",
    b"Location: http://127.0.0.1:1/\r\n",
    b" folded: line\r\n",
    b"\r\n",
    b"\n",
    b"\0\xff\xfe",
    b"5\r\nabcde\r\n",
    b"FFFFFFFFFFFFFFFF\r\n",
    b"0\r\n\r\n",
    b"5;ext=\"\r\n\"\r\nabcde\r\n",
];

/// Whatever a server says: an answer of the one request, or a named reason.
#[test]
fn any_bytes_are_an_answer_or_none() {
    let world = world();
    let session = world.local();
    let (mut state, mut answered) = (7_u64, 0);
    let mut next = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let rounds = 300;
    for round in 0..rounds {
        // Most begin as answers do.
        let mut said = if next(4) > 0 { PARTS[next(4)].to_vec() } else { Vec::new() };
        for _ in 0..next(5) {
            said.extend_from_slice(PARTS[next(PARTS.len())]);
        }
        if next(2) == 0 {
            said.extend_from_slice(b"\r\n");
            said.extend_from_slice(PARTS[next(PARTS.len())]);
        }
        if next(3) == 0 && !said.is_empty() {
            let at = next(said.len());
            said[at] = u8::try_from(next(256)).unwrap();
        }
        let server = Server::saying(said.clone());
        let result = get(&session, &server.url("/"));
        let ends = [Reason::BadResponse, Reason::Unreachable, Reason::OverHold];
        match result.reason() {
            None => answered += 1,
            Some(reason) => assert!(ends.contains(&reason), "{reason}: {said:?}"),
        }
        assert_eq!(server.seen().len(), 1, "{round}: {said:?}");
        let got = result.receipt().used.get(Dimension::IngressBytes);
        assert!(got <= said.len() as u64, "{got}: {said:?}");
    }
    assert!((20..rounds - 20).contains(&answered), "{answered} of {rounds} were answers");
    world.end();
}
