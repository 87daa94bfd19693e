//! One request and its answer.

use std::io::{ErrorKind, Read as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use syscap_format::{Reason, Refused};
use ureq::config::AutoHeaderValue;
use ureq::http::{HeaderMap, Request, Response, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::transport::RustlsConnector;
use ureq::{Agent, Error};

use super::method::Method;
use super::wire::{Dialer, Pinned, Tunnel, Wire};

/// Longest head of an answer, in bytes.
pub(super) const HEAD_BYTES_MAX: usize = 64 << 10;
/// Longest part of an answer that is read at a time.
const PART_BYTES: usize = 16 << 10;

/// The trusted certificate authorities. TLS is set up once for it.
#[derive(Clone, Debug)]
pub(super) struct Trust {
    roots: RootCerts,
    tls: Arc<RustlsConnector>,
}

impl Trust {
    /// The authorities that Mozilla trusts.
    pub(super) fn public() -> Self {
        Self { roots: RootCerts::WebPki, tls: Arc::default() }
    }

    /// These alone, in DER.
    pub(super) fn only(certificates: &[Vec<u8>]) -> Self {
        let all: Vec<Certificate<'static>> =
            certificates.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
        Self { roots: RootCerts::new_with_certs(&all), tls: Arc::default() }
    }
}

/// A request, ready to go.
pub(super) struct Order<'a> {
    pub(super) method: Method,
    /// Absolute; what a secret adds to its query too.
    pub(super) url: &'a str,
    pub(super) headers: &'a [(String, String)],
    pub(super) body: Option<&'a [u8]>,
    /// The judged addresses.
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) tunnel: Option<Tunnel>,
    pub(super) trust: &'a Trust,
    pub(super) until: Instant,
    /// Longest body that is kept.
    pub(super) body_bytes_max: usize,
}

/// The answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) location: Option<String>,
    pub(super) body: Vec<u8>,
    /// True if there was more of it.
    pub(super) is_cut: bool,
}

impl Order<'_> {
    /// Sends it, once, and reads the answer; whatever it says, nothing else is sent.
    pub(super) fn send(self, wire: &Arc<Wire>) -> Result<Answer, Refused> {
        let body_bytes_max = self.body_bytes_max;
        let is_secure = self.url.starts_with("https:");
        let answer = self.exchange(wire).map_err(|error| refused(&error, wire, is_secure))?;
        let headers = answer.headers();
        let (status, encoded) = (answer.status().as_u16(), encoded(headers));
        let text =
            |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (content_type, location) = (text(header::CONTENT_TYPE), text(header::LOCATION));
        if let Some(header) = encoded {
            // Nothing asked for it, and what it would become has no bound.
            let refused = Refused::new(Reason::BadResponse).field(header);
            return Err(refused.allowed("an answer that is not encoded"));
        }
        let (body, is_cut) =
            read(answer, body_bytes_max, wire).map_err(|error| refused(&error, wire, is_secure))?;
        Ok(Answer { status, content_type, location, body, is_cut })
    }

    fn exchange(self, wire: &Arc<Wire>) -> Result<Response<ureq::Body>, Error> {
        let left = self.until.saturating_duration_since(Instant::now());
        let tls = TlsConfig::builder().root_certs(self.trust.roots.clone()).build();
        // All that it would do by itself is set: nothing of the environment, no redirect, no
        // second use of a connection, no header but those that are given.
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(0)
            .max_idle_connections_per_host(0)
            .max_response_header_size(HEAD_BYTES_MAX)
            .user_agent(AutoHeaderValue::None)
            .accept_encoding(AutoHeaderValue::None)
            .timeout_global(Some(left.max(Duration::from_millis(1))))
            .timeout_await_100(None)
            .tls_config(tls)
            .build();
        let pinned = Pinned(self.addresses.clone());
        let dialer = Dialer {
            addresses: self.addresses,
            tunnel: self.tunnel,
            wire: Arc::clone(wire),
            until: self.until,
            tls: Arc::clone(&self.trust.tls),
        };
        let agent = Agent::with_parts(config, dialer, pinned);
        let mut request = Request::builder().method(self.method.name()).uri(self.url);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        match self.body {
            Some(body) => agent.run(request.body(body)?),
            None => agent.run(request.body(())?),
        }
    }
}

/// The header that says that the body is encoded: in another way than in chunks, which are undone
/// on the way (RFC 9112, 6.1).
fn encoded(headers: &HeaderMap) -> Option<&'static str> {
    let other = |name: header::HeaderName, plain: &'static str| {
        let is_plain =
            |value: &header::HeaderValue| value.as_bytes().eq_ignore_ascii_case(plain.as_bytes());
        headers.get_all(name).iter().any(|value| !is_plain(value))
    };
    if other(header::CONTENT_ENCODING, "identity") {
        Some("content-encoding")
    } else if other(header::TRANSFER_ENCODING, "chunked") {
        Some("transfer-encoding")
    } else {
        None
    }
}

/// Reads up to so many bytes, and says whether there are more.
fn read(answer: Response<ureq::Body>, most: usize, wire: &Wire) -> Result<(Vec<u8>, bool), Error> {
    let mut reader = answer.into_body().into_reader();
    let (mut body, mut part) = (Vec::new(), vec![0; PART_BYTES]);
    loop {
        match reader.read(&mut part) {
            Ok(0) => return Ok((body, false)),
            Ok(count) => {
                let room = most.saturating_sub(body.len());
                body.extend(part.iter().take(count.min(room)));
                if count > room {
                    return Ok((body, true));
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // What may be received is used up: the rest is cut, as it is for its length.
            Err(_) if wire.is_full() => return Ok((body, true)),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The refusal for an error. It says nothing that a server wrote.
fn refused(error: &Error, wire: &Wire, is_secure: bool) -> Refused {
    let at = |reason, said: &str| Refused::new(reason).field("url").got(said);
    match error {
        _ if wire.is_full() => Refused::new(Reason::OverHold).field("ingress_bytes"),
        Error::Io(error) if error.kind() == ErrorKind::QuotaExceeded => {
            Refused::new(Reason::OverHold).field("egress_bytes")
        }
        Error::Timeout(_) => at(Reason::Unreachable, "no whole answer in time"),
        Error::HostNotFound | Error::ConnectionFailed => at(Reason::Unreachable, "no connection"),
        Error::Rustls(_) | Error::Tls(_) | Error::TlsRequired => {
            at(Reason::BadCertificate, "no certificate that is believed")
        }
        // So does TLS say it while it begins.
        Error::Io(error)
            if is_secure && !wire.has_begun() && error.kind() == ErrorKind::InvalidData =>
        {
            at(Reason::BadCertificate, "no certificate that is believed")
        }
        Error::Io(_) if !wire.has_begun() => at(Reason::Unreachable, "no connection"),
        Error::Io(_) => at(Reason::BadResponse, "the connection broke off"),
        _ => at(Reason::BadResponse, "no answer of HTTP"),
    }
}
