//! Certificates: an authority of the operator's own, and all that is not what it says.

use std::{io::Write as _, net::TcpStream, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use syscap::prelude::*;

use crate::{
    server::{Server, answer, read},
    world::{World, call, local, text, world},
};

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
    let config = Arc::new(config);
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
fn who_does_not_prove_who_it_is_is_sent_nothing() {
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
    let level = syscap::format::manifest::Enforcement::Lexical;
    assert_eq!(result.receipt().enforcement, level);
    // What the token does not name is not asked of the proxy.
    let refused = call(&session, "inner", r#"{"url": "https://a.example/x"}"#);
    assert_eq!((refused.reason(), proxy.seen().len()), (Some(Reason::OutOfScope), 1));
    world.end();
}
