//! Connections to the door, and the commands outside that answer.
//!
//! A connection sends a service's name and an input; none of it becomes a word of a command line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Child, ChildStdin, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{env, thread};

use syscap::SessionTicket;

use crate::channel;
use crate::exit::{Exit, Failure};
use crate::lane::{self, FRAME_BYTES_MAX, Kind, NAME_BYTES_MAX, Service};

/// How long who has come may take to say what for.
const NAME_TIME: Duration = Duration::from_secs(5);
/// How long commands that answer are waited for when the program has ended.
const END_TIME: Duration = Duration::from_secs(15);
/// Connections at a time that have not said what for.
const UNNAMED_MAX: usize = 32;
/// Most bytes that are read of what is refused.
const REFUSED_BYTES_MAX: usize = 16 << 20;
/// Most bytes that are kept of what gateways say.
const SAID_BYTES_MAX: usize = 64 << 10;

/// A service, and the words of the command that answers.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) service: Service,
    pub(super) words: Vec<OsString>,
}

/// How many may answer at a time: each is a process, and a gateway has servers besides.
const fn most(service: Service) -> usize {
    match service {
        Service::Hook => 16,
        Service::Mcp => 4,
        Service::Call | Service::CallShort | Service::Channel => 8,
    }
}

/// The doorkeeper.
#[derive(Clone)]
pub(super) struct Door(Arc<Shared>);

struct Shared {
    program: PathBuf,
    commands: Vec<Command>,
    /// True if the gateways' messages are kept for the end: the terminal is the program's.
    keeps: bool,
    /// What opens sessions for the run's token, and its home.
    ticket: SessionTicket,
    home: PathBuf,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Default)]
struct State {
    unnamed: usize,
    answering: BTreeMap<Service, usize>,
    said: Vec<u8>,
}

/// One that was let in, counted off also where its thread panics.
struct Guest {
    door: Arc<Shared>,
    service: Option<Service>,
}

impl Door {
    pub(super) fn new(
        commands: Vec<Command>,
        keeps: bool,
        ticket: SessionTicket,
        home: &Path,
    ) -> Result<Self, Failure> {
        let program = env::current_exe().map_err(Failure::Stream)?;
        let (state, left, home) = (Mutex::default(), Condvar::new(), home.to_path_buf());
        Ok(Self(Arc::new(Shared { program, commands, keeps, ticket, home, state, left })))
    }

    /// The services that there are, as the program finds them in its environment.
    pub(super) fn services(&self) -> String {
        let names = self.0.commands.iter().map(|command| command.service);
        let names = names.chain([Service::Channel]).map(Service::name);
        names.collect::<Vec<_>>().join(",")
    }

    /// Lets one in. Without room, or a thread, the connection is closed at once.
    pub(super) fn admit(&self, end: OwnedFd) {
        let mut state = self.0.state();
        if state.unnamed >= UNNAMED_MAX {
            return;
        }
        state.unnamed = state.unnamed.saturating_add(1);
        drop(state);
        let mut guest = Guest { door: Arc::clone(&self.0), service: None };
        let answer = move || {
            // Who has gone needs no answer.
            guest.answer(UnixStream::from(end)).unwrap_or(());
        };
        let started = thread::Builder::new().name("syscap-guest".to_owned()).spawn(answer);
        drop(started);
    }

    /// Waits until all who were let in have gone, for a bounded time; what gateways said.
    pub(super) fn close(&self) -> Vec<u8> {
        let until = Instant::now() + END_TIME;
        let mut state = self.0.state();
        while state.unnamed > 0 || state.answering.values().any(|count| *count > 0) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.0.left.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::take(&mut state.said)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step that can't break off half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a gateway said last.
    fn keep(&self, bytes: &[u8]) {
        let mut state = self.state();
        state.said.extend(bytes);
        let over = state.said.len().saturating_sub(SAID_BYTES_MAX);
        state.said.drain(..over);
    }
}

impl Guest {
    fn answer(&mut self, mut stream: UnixStream) -> io::Result<()> {
        let service = named(&mut stream)?;
        if service == Some(Service::Channel) {
            return self.splice(stream);
        }
        let command = self.door.commands.iter().find(|command| Some(command.service) == service);
        let Some(command) = command.cloned() else {
            return refuse(
                &mut stream,
                service,
                "this service is not given here: see `syscap run`",
            );
        };
        if !self.takes_place(command.service) {
            let why = "too many of this service are under way: try again when one has ended";
            return refuse(&mut stream, service, why);
        }
        let started = process::Command::new(&self.door.program)
            .args(&command.words)
            .env_remove(lane::VARIABLE)
            // An agent writes nothing there that a command would find.
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // What ends the program's terminal does not end what answers.
            .process_group(0)
            .spawn();
        match started {
            Ok(child) => self.carry(&stream, command.service, child),
            Err(error) => refuse(&mut stream, service, &format!("it can't be started: {error}")),
        }
    }

    /// Carries the agents' channel: this process reads none of it.
    fn splice(&mut self, mut stream: UnixStream) -> io::Result<()> {
        let service = Service::Channel;
        if !self.takes_place(service) {
            let why = "too many of this service are under way: try again when one has ended";
            return refuse(&mut stream, Some(service), why);
        }
        let server = match channel::dial(&self.door.home) {
            Ok(server) => server,
            Err(error) => {
                let why = format!("the home's server is not reached: {error}");
                return refuse(&mut stream, Some(service), &why);
            }
        };
        let begin = [&[lane::CHANNEL], &self.door.ticket.as_bytes()[..]].concat();
        stream.write_all(&begin)?;
        thread::scope(|scope| {
            scope.spawn(|| hand(&stream, &server));
            hand(&server, &stream);
            // The server's end is the end, for who still writes, too.
            drop((stream.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both)));
        });
        Ok(())
    }

    fn takes_place(&mut self, service: Service) -> bool {
        let mut state = self.door.state();
        let count = state.answering.entry(service).or_default();
        if *count >= most(service) {
            return false;
        }
        *count = count.saturating_add(1);
        state.unnamed = state.unnamed.saturating_sub(1);
        drop(state);
        self.service = Some(service);
        true
    }

    /// Carries all three streams, and at last the exit code.
    fn carry(&self, stream: &UnixStream, service: Service, mut child: Child) -> io::Result<()> {
        let (input, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let writes = Mutex::new(stream);
        thread::scope(|scope| {
            scope.spawn(|| bring(stream, input));
            let told = scope.spawn(|| match err {
                Some(err) if service == Service::Mcp => self.tell(err),
                Some(err) => carry_out(err, Kind::Err, &writes),
                None => {}
            });
            if let Some(out) = out {
                carry_out(out, Kind::Out, &writes);
            }
            drop(told.join());
            let code = child.wait()?.code().and_then(|code| u8::try_from(code).ok());
            let code = code.unwrap_or_else(|| failed(Some(service)));
            let sent = send(&writes, Kind::End, &[code]);
            // Whoever still writes is not read any more.
            drop(stream.shutdown(Shutdown::Both));
            sent
        })
    }

    /// A gateway's messages are for the operator: its servers' words are no agent's.
    fn tell(&self, mut err: impl Read) {
        let mut bytes = vec![0; FRAME_BYTES_MAX];
        while let Ok(size @ 1..) = err.read(&mut bytes) {
            let bytes = bytes.get(..size).unwrap_or_default();
            if self.door.keeps {
                self.door.keep(bytes);
            } else {
                drop(io::stderr().write_all(bytes));
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut state = self.door.state();
        match self.service.and_then(|service| state.answering.get_mut(&service)) {
            Some(count) => *count = count.saturating_sub(1),
            None => state.unnamed = state.unnamed.saturating_sub(1),
        }
        drop(state);
        self.door.left.notify_all();
    }
}

/// Which service it wants; `None` for one that is not known.
fn named(stream: &mut UnixStream) -> io::Result<Option<Service>> {
    stream.set_read_timeout(Some(NAME_TIME))?;
    let mut name = Vec::new();
    let mut byte = [0; 1];
    while name.len() < NAME_BYTES_MAX {
        stream.read_exact(&mut byte)?;
        if byte == *b"\n" {
            break;
        }
        name.extend(byte);
    }
    stream.set_read_timeout(None)?;
    Ok(Service::ALL.into_iter().find(|service| service.name().as_bytes() == name))
}

/// The exit code of a service that could not answer.
const fn failed(service: Option<Service>) -> u8 {
    match service {
        Some(Service::Hook) => Exit::Blocked.code(),
        _ => Exit::Failed.code(),
    }
}

fn refuse(stream: &mut UnixStream, service: Option<Service>, why: &str) -> io::Result<()> {
    lane::write_frame(stream, Kind::Err, format!("syscap: {why}\n").as_bytes())?;
    lane::write_frame(stream, Kind::End, &[failed(service)])?;
    // What it still sends is read, for a while: an end before that would take the answer with it.
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(NAME_TIME))?;
    let most = u64::try_from(REFUSED_BYTES_MAX).unwrap_or(u64::MAX);
    io::copy(&mut stream.take(most), &mut io::sink()).map(drop)
}

/// Hands on what comes, to its end.
fn hand(mut from: &UnixStream, mut to: &UnixStream) {
    // One that has gone takes and gives nothing more.
    drop(io::copy(&mut from, &mut to));
    to.shutdown(Shutdown::Write).unwrap_or(());
}

/// Brings the input to the command, to its end.
fn bring(mut stream: &UnixStream, input: Option<ChildStdin>) {
    let Some(mut input) = input else { return };
    let mut bytes = vec![0; FRAME_BYTES_MAX];
    while let Ok(size @ 1..) = stream.read(&mut bytes) {
        if input.write_all(bytes.get(..size).unwrap_or_default()).is_err() {
            return;
        }
    }
}

/// Carries a stream of the command's. If nobody reads it any more the command's output is closed:
/// it ends.
fn carry_out(mut from: impl Read, kind: Kind, to: &Mutex<&UnixStream>) {
    let mut bytes = vec![0; FRAME_BYTES_MAX];
    while let Ok(size @ 1..) = from.read(&mut bytes) {
        if send(to, kind, bytes.get(..size).unwrap_or_default()).is_err() {
            let stream = to.lock().unwrap_or_else(PoisonError::into_inner);
            drop(stream.shutdown(Shutdown::Both));
            return;
        }
    }
}

fn send(to: &Mutex<&UnixStream>, kind: Kind, bytes: &[u8]) -> io::Result<()> {
    let mut stream: &UnixStream = *to.lock().unwrap_or_else(PoisonError::into_inner);
    lane::write_frame(&mut stream, kind, bytes)
}
