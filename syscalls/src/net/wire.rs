//! Connections: to addresses that were judged, and to nothing else; counted byte by byte.
//!
//! `ureq` speaks HTTP over them and `rustls` TLS; both see no socket but the one that is made here.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, RustlsConnector, Transport,
};
use ureq::{Error, Timeout};

use super::target::Target;

/// Longest answer of a proxy to `CONNECT`, in bytes.
const PROXY_HEAD_BYTES_MAX: usize = 8 << 10;

/// The limits of one exchange, and its use of them. Units are counted before they are used.
#[derive(Debug)]
pub(super) struct Wire {
    sent: Gauge,
    received: Gauge,
    /// The server can have seen a part of the request.
    begun: AtomicBool,
}

#[derive(Debug)]
struct Gauge {
    used: AtomicU64,
    most: u64,
}

impl Gauge {
    const fn new(most: u64) -> Self {
        Self { used: AtomicU64::new(0), most }
    }

    /// Takes up to `wanted`, and says how many there were.
    fn take(&self, wanted: usize) -> usize {
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
        let more = |used: u64| {
            let taken = wanted.min(self.most.saturating_sub(used));
            Some(used.saturating_add(taken))
        };
        let before = self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        let before = before.unwrap_or_else(|before| before);
        usize::try_from(wanted.min(self.most.saturating_sub(before))).unwrap_or(0)
    }

    /// Gives back what was not used of it.
    fn give_back(&self, unused: usize) {
        self.used.fetch_sub(u64::try_from(unused).unwrap_or(0), Ordering::SeqCst);
    }
}

impl Wire {
    pub(super) const fn new(sent_max: u64, received_max: u64) -> Self {
        let (sent, received) = (Gauge::new(sent_max), Gauge::new(received_max));
        Self { sent, received, begun: AtomicBool::new(false) }
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent.used.load(Ordering::SeqCst)
    }

    pub(super) fn received(&self) -> u64 {
        self.received.used.load(Ordering::SeqCst)
    }

    /// True if no more may be received.
    pub(super) fn is_full(&self) -> bool {
        self.received() >= self.received.most
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::SeqCst)
    }
}

/// Said where more would be sent or received than was set aside.
fn over() -> Error {
    Error::Io(io::Error::new(ErrorKind::QuotaExceeded, "more than was set aside"))
}

/// The proxy that an operator has set: a tunnel to any host.
#[derive(Clone, Debug)]
pub(super) struct Tunnel {
    pub(super) addresses: Vec<SocketAddr>,
    /// The text behind `CONNECT`: the target's host and port.
    pub(super) to: String,
}

/// Makes the one connection of an exchange.
#[derive(Debug)]
pub(super) struct Dialer {
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) tunnel: Option<Tunnel>,
    pub(super) wire: Arc<Wire>,
    /// When all of it must be over.
    pub(super) until: Instant,
    /// Made once for all exchanges with the same roots.
    pub(super) tls: Arc<RustlsConnector>,
}

impl Connector<()> for Dialer {
    type Out = Box<dyn Transport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<Self::Out>, Error> {
        let addresses = self.tunnel.as_ref().map_or(&self.addresses, |tunnel| &tunnel.addresses);
        let stream = dial(addresses, self.until)?;
        stream.set_nodelay(true)?;
        let line = Line { stream, wire: Arc::clone(&self.wire), until: self.until };
        if let Some(tunnel) = &self.tunnel {
            line.dig(&tunnel.to)?;
        }
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        let made = Connector::connect(&*self.tls, details, Some(Socket { line, buffers }))?;
        // From here on the request goes out.
        self.wire.begun.store(true, Ordering::SeqCst);
        Ok(made.map(|transport| -> Box<dyn Transport> { Box::new(transport) }))
    }
}

/// The first address that answers; each but the last has half of what is left.
fn dial(addresses: &[SocketAddr], until: Instant) -> Result<TcpStream, Error> {
    let mut failed = Error::HostNotFound;
    for (place, address) in addresses.iter().enumerate() {
        let left = left(until)?;
        let is_last = place.saturating_add(1) == addresses.len();
        let share = if is_last { left } else { left / 2 };
        match TcpStream::connect_timeout(address, share.max(LEAST)) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = timed_out(error),
        }
    }
    Err(failed)
}

/// The shortest time that the system is told to wait.
const LEAST: Duration = Duration::from_millis(1);

/// How long may be waited; an error where that is over.
fn left(until: Instant) -> Result<Duration, Error> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Error::Timeout(Timeout::Global)) } else { Ok(left.max(LEAST)) }
}

fn timed_out(error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Error::Timeout(Timeout::Global),
        _ => Error::Io(error),
    }
}

/// A connected socket, and what may go over it until when. However slowly a server answers or
/// reads, it gets no more time.
struct Line {
    stream: TcpStream,
    wire: Arc<Wire>,
    until: Instant,
}

impl Line {
    fn read(&self, buffer: &mut [u8]) -> Result<usize, Error> {
        let room = self.wire.received.take(buffer.len());
        if room == 0 && !buffer.is_empty() {
            return Err(over());
        }
        let part = buffer.get_mut(..room).unwrap_or_default();
        let read = loop {
            let read = left(self.until).and_then(|left| {
                self.stream.set_read_timeout(Some(left))?;
                Ok((&self.stream).read(part))
            });
            match read {
                Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                Ok(read) => break read.map_err(timed_out),
                Err(over) => break Err(over),
            }
        };
        let count = read.as_ref().map_or(0, |count| *count);
        self.wire.received.give_back(room.saturating_sub(count));
        read
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        let taken = self.wire.sent.take(bytes.len());
        if taken < bytes.len() {
            self.wire.sent.give_back(taken);
            return Err(over());
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            self.stream.set_write_timeout(Some(left(self.until)?))?;
            match (&self.stream).write(rest) {
                Ok(0) => return Err(Error::Io(ErrorKind::WriteZero.into())),
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(timed_out(error)),
            }
        }
        Ok(())
    }

    /// Asks a proxy for a tunnel, and reads no byte beyond its answer.
    fn dig(&self, to: &str) -> Result<(), Error> {
        self.write(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").as_bytes())?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if answer.len() >= PROXY_HEAD_BYTES_MAX || self.read(&mut byte)? == 0 {
                return Err(Error::ConnectionFailed);
            }
            answer.extend(byte);
        }
        let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let status = line.strip_prefix(b"HTTP/1.1 ").or(line.strip_prefix(b"HTTP/1.0 "));
        let is_open = status.is_some_and(|status| status.starts_with(b"2"));
        if is_open { Ok(()) } else { Err(Error::ConnectionFailed) }
    }
}

/// A line with the buffers that `ureq` reads and writes by.
struct Socket {
    line: Line,
    buffers: LazyBuffers,
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Socket")
    }
}

impl Transport for Socket {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), Error> {
        let Self { line, buffers } = self;
        line.write(buffers.output().get(..amount).ok_or(Error::ConnectionFailed)?)
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, Error> {
        let Self { line, buffers } = self;
        let count = line.read(buffers.input_append_buf())?;
        buffers.input_appended(count);
        Ok(count > 0)
    }

    /// It is used for one exchange.
    fn is_open(&mut self) -> bool {
        false
    }
}

/// Says what was looked up before: `ureq` asks nobody else.
#[derive(Debug)]
pub(super) struct Pinned(pub(super) Vec<SocketAddr>);

impl Resolver for Pinned {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut found = self.empty();
        self.0.iter().take(16).for_each(|address| found.push(*address));
        if found.is_empty() { Err(Error::HostNotFound) } else { Ok(found) }
    }
}

/// The text behind `CONNECT`.
pub(super) fn authority(target: &Target) -> String {
    let host = match target.place() {
        super::target::Place::Name(name) => name.as_str().to_owned(),
        super::target::Place::Address(std::net::IpAddr::V6(address)) => format!("[{address}]"),
        super::target::Place::Address(address) => address.to_string(),
    };
    format!("{host}:{}", target.port())
}
