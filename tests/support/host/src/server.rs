//! A server of HTTP that answers as a test says, byte by byte, and keeps what it was sent.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::net;

/// What it was sent on one connection: the head as it stands, and the body.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    pub head: String,
    pub body: Vec<u8>,
}

impl Sent {
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    /// A header's value, by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        found.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

#[derive(Clone)]
pub struct Server {
    pub port: u16,
    seen: Arc<Mutex<Vec<Sent>>>,
}

impl Server {
    /// One that answers each request by what `answer` writes.
    pub fn new(answer: impl Fn(&Sent, &mut dyn Write) + Send + Sync + 'static) -> Self {
        Self::of(move |mut stream: TcpStream, seen: &Mutex<Vec<Sent>>| {
            let Some(sent) = read(&mut stream) else { return };
            seen.lock().unwrap().push(sent.clone());
            answer(&sent, &mut stream);
        })
    }

    /// One that always says the same.
    pub fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        // Where nobody reads it any more, that is what is tested.
        Self::new(move |_, stream| stream.write_all(&answer).unwrap_or_default())
    }

    pub fn of(serve: impl Fn(TcpStream, &Mutex<Vec<Sent>>) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<Sent>>> = Arc::default();
        let (serve, kept) = (Arc::new(serve), Arc::clone(&seen));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let (serve, seen) = (Arc::clone(&serve), Arc::clone(&kept));
                thread::spawn(move || serve(stream, &seen));
            }
        });
        Self { port, seen }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// All that it was sent so far.
    pub fn seen(&self) -> Vec<Sent> {
        self.seen.lock().unwrap().clone()
    }
}

/// A port at which nobody answers, as long as it is held: bound, so that no other test's server gets
/// it, and never listened on.
pub struct Deaf(OwnedFd);

impl Deaf {
    pub fn new() -> Self {
        let socket = net::socket(net::AddressFamily::INET, net::SocketType::STREAM, None).unwrap();
        net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        Self(socket)
    }

    pub fn url(&self) -> String {
        let name = SocketAddr::try_from(net::getsockname(&self.0).unwrap()).unwrap();
        format!("http://{name}/")
    }
}

/// Reads a request: its head, and as much body as that says.
pub fn read(stream: &mut impl Read) -> Option<Sent> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let mut sent = Sent { head, body: Vec::new() };
    let length: usize = sent.header("content-length").map_or(0, |text| text.parse().unwrap());
    sent.body = vec![0; length];
    stream.read_exact(&mut sent.body).ok()?;
    Some(sent)
}

/// An answer with a body of a media type.
pub fn answer(status: &str, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}
