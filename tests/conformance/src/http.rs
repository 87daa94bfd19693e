//! MCP by HTTP (revision 2025-06-18, "Streamable HTTP"): lines go out and come in as they do on
//! standard input and output.

use std::fmt;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read as _, Write as _};
use std::mem;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::{HeaderValue, Request, Response, Uri, header, request};
use ureq::{Agent, Body};

use crate::mcp::REVISION;
use crate::subject::LINE_BYTES_MAX;

/// How long one exchange may go on.
const EXCHANGE_MAX: Duration = Duration::from_secs(300);
/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(1);
const SESSION: &str = "Mcp-Session-Id";

/// The URL of a gateway.
#[derive(Clone)]
pub(crate) struct Url(Uri);

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|error| format!("{text}: {error}"))?;
        match (uri.scheme_str(), uri.host()) {
            (Some("http" | "https"), Some(_)) => Ok(Self(uri)),
            _ => Err(format!("{text}: not a URL of http or https")),
        }
    }

    /// True if a program accepts connections there.
    pub(crate) fn listens(&self) -> bool {
        let host = self.0.host().unwrap_or_default().trim_matches(['[', ']']);
        let usual = if self.0.scheme_str() == Some("https") { 443 } else { 80 };
        let addresses = (host, self.0.port_u16().unwrap_or(usual)).to_socket_addrs();
        let takes = |address| TcpStream::connect_timeout(&address, CONNECT_MAX).is_ok();
        addresses.is_ok_and(|mut addresses| addresses.any(takes))
    }
}

/// Sends each line that comes, and writes each message that it gets as one. It ends with the lines.
pub(crate) fn carry(url: Url, lines: PipeReader, out: PipeWriter) {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_idle_connections(0)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .timeout_global(Some(EXCHANGE_MAX))
        .build();
    let agent = config.new_agent();
    let link = Arc::new(Link { agent, url, session: Mutex::default(), out: Mutex::new(Some(out)) });
    for line in BufReader::new(lines).lines() {
        let Ok(line) = line else { break };
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        let (method, id) = (message.get("method"), message.get("id").cloned());
        let of = Arc::clone(&link);
        if method.is_some() == id.is_some() {
            // A request: its answer may wait for what is sent meanwhile.
            thread::spawn(move || of.post(line, id.as_ref()));
        } else {
            link.post(line, None);
            if method.is_some_and(|method| method == "notifications/initialized") {
                thread::spawn(move || of.listen());
            }
        }
    }
    link.leave();
}

struct Link {
    agent: Agent,
    url: Url,
    session: Mutex<Option<HeaderValue>>,
    /// None when nobody is there any more.
    out: Mutex<Option<PipeWriter>>,
}

impl Link {
    /// The head of a request in this session.
    fn head(&self, method: &str) -> request::Builder {
        let head = Request::builder().method(method).uri(self.url.0.clone());
        match &*self.session.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(session) => head.header(SESSION, session).header("MCP-Protocol-Version", REVISION),
            None => head,
        }
    }

    /// Sends a message, and reads what comes of it. `id` is a request's.
    fn post(&self, line: String, id: Option<&Value>) {
        let request = self
            .head("POST")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .body(line);
        match request.map_err(ureq::Error::from).and_then(|request| self.agent.run(request)) {
            Ok(answer) => self.read(answer, id),
            // Its output is closed, as that of a command that has ended.
            Err(_) => *self.out.lock().unwrap_or_else(PoisonError::into_inner) = None,
        }
    }

    fn read(&self, answer: Response<Body>, id: Option<&Value>) {
        if let Some(session) = answer.headers().get(SESSION) {
            *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session.clone());
        }
        let status = answer.status();
        if is_events(&answer) {
            self.events(&mut BufReader::new(answer.into_body().into_reader()));
        } else if !status.is_success() {
            if let Some(id) = id {
                let error = json!({"code": status.as_u16(), "message": format!("HTTP {status}")});
                let said = json!({"jsonrpc": "2.0", "id": id, "error": error});
                self.say(said.to_string().as_bytes());
            }
        } else {
            let mut text = Vec::new();
            let body = answer.into_body().into_reader();
            // A body that breaks off is no JSON, which is told where it is read.
            drop(body.take(LINE_BYTES_MAX).read_to_end(&mut text));
            if !text.trim_ascii().is_empty() {
                self.say(&text);
            }
        }
    }

    /// Reads the messages that the gateway sends by itself, if it does.
    fn listen(&self) {
        let request = self.head("GET").header(header::ACCEPT, "text/event-stream").body(());
        let asked = request.map_err(ureq::Error::from).and_then(|request| self.agent.run(request));
        // One that has nothing to say refuses.
        if let Ok(answer) = asked
            && is_events(&answer)
        {
            self.events(&mut BufReader::new(answer.into_body().into_reader()));
        }
    }

    /// Reads events until they end. Each holds a message.
    fn events(&self, body: &mut impl BufRead) {
        let mut data = Vec::new();
        loop {
            let mut line = Vec::new();
            let read = body.take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
            let has_end = line.ends_with(b"\n");
            if read.is_err() || line.is_empty() {
                return;
            }
            if let Some(part) = line.strip_prefix(b"data:") {
                data.extend_from_slice(part);
            } else if line.trim_ascii().is_empty() && !data.trim_ascii().is_empty() {
                self.say(&mem::take(&mut data));
            }
            let longer = if line.len() > data.len() { &line } else { &data };
            if u64::try_from(longer.len()).is_ok_and(|length| length >= LINE_BYTES_MAX) {
                return self.say(longer);
            }
            if !has_end {
                return;
            }
        }
    }

    /// Writes a message as one line. One that is too long is found so where it is read.
    fn say(&self, message: &[u8]) {
        let flat = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
        let line: Vec<u8> = message.iter().map(flat).chain([b'\n']).collect();
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if out.as_mut().is_some_and(|out| out.write_all(&line).is_err()) {
            *out = None;
        }
    }

    /// Ends the session. One that has gone needs no farewell.
    fn leave(&self) {
        if self.session.lock().unwrap_or_else(PoisonError::into_inner).is_some()
            && let Ok(request) = self.head("DELETE").body(())
        {
            drop(self.agent.run(request));
        }
    }
}

fn is_events(answer: &Response<Body>) -> bool {
    let kind = answer.headers().get(header::CONTENT_TYPE);
    answer.status().is_success()
        && kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}
