//! The runner's loopback server: it counts what tools ask of it, and holds answers back.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::subject::{Fault, harness};

/// Longest head of a request, in bytes.
const HEAD_BYTES_MAX: u64 = 1 << 14;
/// How long an answer is held back at most.
const HELD_MAX: Duration = Duration::from_secs(30);
/// How long a request may take to arrive.
const READ_MAX: Duration = Duration::from_secs(10);
/// Connections at once, and paths that are counted. More than that gets no answer.
const CONNECTIONS_MAX: usize = 512;
const PATHS_MAX: usize = 10_000;

#[derive(Default)]
struct Seen {
    /// Requests by path.
    hits: BTreeMap<String, u64>,
    /// Paths whose answer is held back.
    held: BTreeSet<String>,
}

type Shared = Arc<(Mutex<Seen>, Condvar)>;

/// A server on a port of its own. It serves until the process ends.
pub(crate) struct Server {
    seen: Shared,
    address: SocketAddr,
}

impl Server {
    pub(crate) fn start() -> Result<Self, Fault> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(harness("no port is free"))?;
        let address = listener.local_addr().map_err(harness("the port"))?;
        let seen = Shared::default();
        let of = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let of = Arc::clone(&of);
                // Each connection has a share of it; one too many is closed, and gets nothing.
                if Arc::strong_count(&of) <= CONNECTIONS_MAX {
                    thread::spawn(move || serve(&stream, &of));
                }
            }
        });
        Ok(Self { seen, address })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn with<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        let (seen, changed) = &*self.seen;
        let found = look(&mut seen.lock().unwrap_or_else(PoisonError::into_inner));
        changed.notify_all();
        found
    }

    /// How often each path below this one was asked for: what follows `below`, and the hits.
    pub(crate) fn below(&self, below: &str) -> Vec<(String, u64)> {
        self.with(|seen| {
            let own =
                |(path, hits): (&String, &u64)| Some((path.strip_prefix(below)?.to_owned(), *hits));
            seen.hits.iter().filter_map(own).collect()
        })
    }

    pub(crate) fn hold(&self, path: &str) {
        self.with(|seen| seen.held.insert(path.to_owned()));
    }

    pub(crate) fn release(&self, path: &str) {
        self.with(|seen| seen.held.remove(path));
    }

    /// Waits until a path was asked for: whether it was.
    pub(crate) fn wait(&self, path: &str, timeout: Duration) -> bool {
        let (seen, changed) = &*self.seen;
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let lacks = |seen: &mut Seen| !seen.hits.contains_key(path);
        let waited = changed.wait_timeout_while(seen, timeout, lacks);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// The page of each check that is answered with a failure, so that a tool fails.
const FAILS: &str = "/fails";

/// One request, one answer. Input that is no request gets no answer.
fn serve(stream: &TcpStream, seen: &Shared) {
    if stream.set_read_timeout(Some(READ_MAX)).is_err() {
        return;
    }
    let mut line = String::new();
    let mut head = BufReader::new(stream.take(HEAD_BYTES_MAX));
    let read = head.read_line(&mut line);
    let Some(path) = read.ok().and_then(|_| line.split(' ').nth(1)).map(str::to_owned) else {
        return;
    };
    let mut rest = String::new();
    while head.read_line(&mut rest).is_ok_and(|read| read > 2) {
        rest.clear();
    }
    let (of, changed) = &**seen;
    let mut of = of.lock().unwrap_or_else(PoisonError::into_inner);
    if of.hits.len() >= PATHS_MAX && !of.hits.contains_key(&path) {
        return;
    }
    let hits = of.hits.entry(path.clone()).or_default();
    *hits = hits.saturating_add(1);
    changed.notify_all();
    let is_held = |seen: &mut Seen| seen.held.contains(&path);
    drop(changed.wait_timeout_while(of, HELD_MAX, is_held));
    let (status, body) = match path.ends_with(FAILS) {
        true => ("500 Internal Server Error", "failed"),
        false => ("200 OK", "done"),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream = stream;
    // Who has gone away gets no answer.
    drop(stream.write_all(answer.as_bytes()));
}
