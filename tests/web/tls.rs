//! Certificates: an authority of the operator's own, and all that is not what it says.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use host_support::server::{Server, answer, read};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use syscap::prelude::*;

use crate::web::world::{World, call, local, text, world};

/// An authority, and its certificate in PEM.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

fn authority() -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).unwrap().pem();
    Authority { issuer: Issuer::new(params, key), pem }
}

/// How a certificate differs from one that is fine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Odd {
    Fine,
    OtherName,
    Expired,
    NotYet,
    SelfSigned,
}

fn server(authority: &Authority, name: &str, odd: Odd) -> Server {
    let config = config(authority, name, odd);
    Server::of(move |stream: TcpStream, seen| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        let Some(sent) = read(&mut stream) else { return };
        seen.lock().unwrap().push(sent);
        stream.write_all(&answer("200 OK", "text/plain", "sealed")).unwrap_or_default();
        stream.conn.send_close_notify();
        stream.flush().unwrap_or_default();
    })
}

/// What a server of TLS proves itself by.
fn config(authority: &Authority, name: &str, odd: Odd) -> Arc<ServerConfig> {
    let key = KeyPair::generate().unwrap();
    let name = if odd == Odd::OtherName { "other.test" } else { name };
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    match odd {
        Odd::Expired => params.not_after = rcgen::date_time_ymd(2020, 1, 1),
        Odd::NotYet => params.not_before = rcgen::date_time_ymd(2999, 1, 1),
        _ => {}
    }
    let certificate = match odd {
        Odd::SelfSigned => params.self_signed(&key).unwrap(),
        _ => params.signed_by(&key, &authority.issuer).unwrap(),
    };
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    Arc::new(config)
}

fn with_roots(world: &World, pem: &str) -> Session {
    let pem = pem.replace("\r\n", "\n").replace('\n', "\\n");
    world.set("inner", &format!(r#"{{"roots": "{pem}"}}"#));
    world.names.lead("a.test", &[&["127.0.0.1"]]);
    world.session(local(&["inner", "http_request"]))
}

fn ask(session: &Session, tool: &str, server: &Server) -> ToolResult {
    call(session, tool, &format!(r#"{{"url": "https://a.test:{}/x"}}"#, server.port))
}

#[test]
fn an_authority_of_the_operators_own_is_believed_where_it_is_set() {
    let (world, authority) = (world(), authority());
    let session = with_roots(&world, &authority.pem);
    let server = server(&authority, "a.test", Odd::Fine);
    let result = ask(&session, "inner", &server);
    assert_eq!(text(&result, "data").as_deref(), Some("sealed"));
    let sent = &server.seen()[0];
    assert_eq!(sent.line(), "GET /x HTTP/1.1");
    // Below TLS more is sent than is said.
    assert!(result.receipt().used.get(Dimension::EgressBytes) > sent.head.len() as u64);
    // By itself nobody believes it.
    let refused = ask(&session, "http_request", &server);
    assert_eq!(refused.reason(), Some(Reason::BadCertificate));
    assert_eq!(server.seen().len(), 1);
    world.end();
}

#[test]
fn unauthenticated_server_is_sent_nothing() {
    let (world, authority) = (world(), authority());
    let session = with_roots(&world, &authority.pem);
    for odd in [Odd::OtherName, Odd::Expired, Odd::NotYet, Odd::SelfSigned] {
        let server = server(&authority, "a.test", odd);
        let refused = ask(&session, "inner", &server);
        assert_eq!(refused.reason(), Some(Reason::BadCertificate));
        assert_eq!(server.seen().len(), 0);
    }
    // Another authority's.
    let server = server(&self::authority(), "a.test", Odd::Fine);
    assert_eq!(ask(&session, "inner", &server).reason(), Some(Reason::BadCertificate));
    // No TLS at all.
    let plain = Server::of(|mut stream, _| {
        stream.write_all(&answer("200 OK", "text/plain", "x")).unwrap();
    });
    let refused = ask(&session, "inner", &plain);
    assert_eq!(refused.reason(), Some(Reason::BadCertificate));
    world.end();
}

/// Fronting: who is named to TLS, and proves it, is who is named to HTTP.
#[test]
fn the_name_that_is_proven_is_the_host_that_is_asked() {
    let (world, authority) = (world(), authority());
    let session = with_roots(&world, &authority.pem);
    let config = config(&authority, "a.test", Odd::Fine);
    let proven: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let kept = Arc::clone(&proven);
    let server = Server::of(move |stream: TcpStream, seen| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        let Some(sent) = read(&mut stream) else { return };
        kept.lock().unwrap().push(stream.conn.server_name().map(str::to_owned));
        seen.lock().unwrap().push(sent);
        stream.write_all(&answer("200 OK", "text/plain", "x")).unwrap_or_default();
        stream.conn.send_close_notify();
        stream.flush().unwrap_or_default();
    });
    assert_eq!(ask(&session, "inner", &server).reason(), None);
    assert_eq!(*proven.lock().unwrap(), [Some("a.test".to_owned())]);
    assert_eq!(server.seen()[0].header("host"), Some(&*format!("a.test:{}", server.port)));
    // No header makes them two.
    for name in ["Host", "host", "X-Forwarded-Host", "Forwarded", ":authority"] {
        let url = format!("https://a.test:{}/x", server.port);
        let args = format!(r#"{{"url": "{url}", "headers": {{"{name}": "b.test"}}}}"#);
        let refused = call(&session, "inner", &args);
        assert_eq!(refused.reason(), Some(Reason::BadArgument), "{name}");
    }
    assert_eq!(server.seen().len(), 1);
    world.end();
}

#[test]
fn an_address_is_proven_by_a_certificate_of_it() {
    let (world, authority) = (world(), authority());
    let session = with_roots(&world, &authority.pem);
    let ask = |server: &Server| {
        call(&session, "inner", &format!(r#"{{"url": "https://127.0.0.1:{}/"}}"#, server.port))
    };
    let own = server(&authority, "127.0.0.1", Odd::Fine);
    assert_eq!(text(&ask(&own), "data").as_deref(), Some("sealed"));
    for name in ["127.0.0.2", "a.test", "localhost"] {
        let other = server(&authority, name, Odd::Fine);
        assert_eq!(ask(&other).reason(), Some(Reason::BadCertificate), "{name}");
        assert_eq!(other.seen().len(), 0);
    }
    // Nor is a name proven by its address.
    let refused = self::ask(&session, "inner", &own);
    assert_eq!((refused.reason(), own.seen().len()), (Some(Reason::BadCertificate), 1));
    world.end();
}

/// The versions that a first message of TLS offers (RFC 8446, 4.1.2 and 4.2.1).
fn offered(hello: &[u8]) -> Vec<u16> {
    let two = |at: usize| usize::from(hello[at]) << 8 | usize::from(hello[at + 1]);
    // Behind the heads of record and message, the version and the random bytes.
    let mut at = 5 + 4 + 2 + 32;
    at += 1 + usize::from(hello[at]);
    at += 2 + two(at);
    at += 1 + usize::from(hello[at]);
    let end = at + 2 + two(at);
    at += 2;
    while at < end {
        let (kind, length) = (two(at), two(at + 2));
        if kind == 43 {
            let list = &hello[at + 5..at + 4 + length];
            return list.chunks(2).map(|v| u16::from(v[0]) << 8 | u16::from(v[1])).collect();
        }
        at += 4 + length;
    }
    Vec::new()
}

/// TLS 1.3 and 1.2 are offered, and what chooses an older one is sent no request.
#[test]
fn older_versions_are_not_spoken() {
    let (world, authority) = (world(), authority());
    let session = with_roots(&world, &authority.pem);
    for chosen in [0x0300_u16, 0x0301, 0x0302] {
        let [high, low] = chosen.to_be_bytes();
        let (says, heard) = mpsc::channel();
        let old = Server::of(move |mut stream: TcpStream, _| {
            let mut head = [0; 5];
            stream.read_exact(&mut head).unwrap();
            let mut body = vec![0; usize::from(head[3]) << 8 | usize::from(head[4])];
            stream.read_exact(&mut body).unwrap();
            let first = [&head[..], &body].concat();
            // A ServerHello: random bytes, no session, ECDHE-RSA-AES128-SHA, no compression.
            let mut hello = vec![22, high, low, 0, 42, 2, 0, 0, 38, high, low];
            hello.extend([7; 32]);
            hello.extend([0, 0xc0, 0x13, 0]);
            stream.write_all(&hello).unwrap_or_default();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).unwrap_or_default();
            says.send((first, rest)).unwrap_or_default();
        });
        let refused = ask(&session, "inner", &old);
        assert_eq!(refused.reason(), Some(Reason::BadCertificate), "{chosen:x}");
        let (first, rest) = heard.recv_timeout(Duration::from_secs(30)).unwrap();
        assert_eq!(offered(&first), [0x0304, 0x0303]);
        // At most one alert, in the clear, and nothing of a request.
        assert!(rest.len() <= 7 && rest.first().is_none_or(|kind| *kind == 21), "{rest:?}");
    }
    world.end();
}

/// A server that does nothing but change its keys, and has the other side change its own.
#[test]
fn keys_that_change_without_end_get_no_more_time() {
    let (world, authority) = (world(), authority());
    let pem = authority.pem.replace("\r\n", "\n").replace('\n', "\\n");
    world.set("inner", &format!(r#"{{"roots": "{pem}", "timeout_ms": 1000}}"#));
    world.names.lead("a.test", &[&["127.0.0.1"]]);
    let session = world.session(local(&["inner"]));
    let config = config(&authority, "a.test", Odd::Fine);
    let server = Server::of(move |stream: TcpStream, seen| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        let Some(sent) = read(&mut stream) else { return };
        seen.lock().unwrap().push(sent);
        while stream.conn.refresh_traffic_keys().is_ok() && stream.flush().is_ok() {}
    });
    let refused = ask(&session, "inner", &server);
    let ended = [Reason::Unreachable, Reason::OverHold, Reason::BadResponse];
    assert!(refused.reason().is_some_and(|reason| ended.contains(&reason)), "{refused:?}");
    assert_eq!(server.seen().len(), 1);
    let used = &refused.receipt().used;
    assert!(used.get(Dimension::WallUs) < 3_000_000, "within what was set aside");
    assert!(used.get(Dimension::IngressBytes) < 400_000);
    world.end();
}

/// A proxy of the operator's: a tunnel to the host that was judged, and TLS through it.
#[test]
fn a_proxy_of_the_operators_is_a_tunnel() {
    let (world, authority) = (world(), authority());
    let server = server(&authority, "a.test", Odd::Fine);
    let port = server.port;
    let proxy = Server::of(move |mut stream, seen| {
        let Some(sent) = read(&mut stream) else { return };
        let connects = sent.line().starts_with("CONNECT ");
        seen.lock().unwrap().push(sent);
        if !connects {
            return;
        }
        let mut to = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
        let (mut from, mut back) = (stream.try_clone().unwrap(), to.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut back, &mut stream));
        std::io::copy(&mut from, &mut to).unwrap_or_default();
    });
    let pem = authority.pem.replace("\r\n", "\n").replace('\n', "\\n");
    let settings = format!(r#"{{"roots": "{pem}", "proxy": "http://127.0.0.1:{}"}}"#, proxy.port);
    world.set("inner", &settings);
    let session = world.session(local(&["inner"]));
    // Nobody is asked for the address: that is the proxy's to find.
    let result = call(&session, "inner", r#"{"url": "https://a.test/x"}"#);
    assert_eq!(text(&result, "data").as_deref(), Some("sealed"));
    assert_eq!(proxy.seen()[0].line(), "CONNECT a.test:443 HTTP/1.1");
    let level = syscap::format::Enforcement::Lexical;
    assert_eq!(result.receipt().enforcement, level);
    // What the token does not name is not asked of the proxy.
    let refused = call(&session, "inner", r#"{"url": "https://a.example/x"}"#);
    assert_eq!((refused.reason(), proxy.seen().len()), (Some(Reason::OutOfScope), 1));
    world.end();
}
