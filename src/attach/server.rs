//! The holder's side: who comes in, what is worked on, and how it closes.
//!
//! One thread takes connections, one reads each, and each request has a thread of its own. None
//! of them holds anything of the kernel's while it waits for a peer.

use std::{
    collections::BTreeMap,
    os::unix::net::UnixStream,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Instant,
};

use syscap_kernel::{cbor::Item, reason::Reason};

use super::{
    limits::{
        CALLS_MAX, CONNECTIONS_MAX, DRAIN_TIME, END_TIME, HELLO_TIME, PROTOCOL_VERSION, TRY_PAUSE,
    },
    message::{Ask, Frame, Order},
    peer::Peer,
    reply::{Failure, Greeting, Reply},
    seat::{Seat, Sessions},
    socket::{SOCKET_FILE, Socket, is_ours},
    wire::{Broken, Reader},
};
use crate::{ConnectionId, Error, Runtime, error::at, guard::caught};

/// Serves a runtime to the processes that attach to its home.
pub(crate) struct Server {
    hub: Arc<Hub>,
    socket: Arc<Socket>,
}

/// What the server's threads share.
struct Hub {
    runtime: Runtime,
    state: Mutex<State>,
    /// Told when something ends.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    seats: BTreeMap<ConnectionId, Arc<Seat>>,
    last: u64,
    /// Whether new requests are refused.
    closing: bool,
    /// Requests that are worked on.
    requests: usize,
    /// Those of them that are calls.
    calls: usize,
    /// Whether connections are taken.
    listening: bool,
}

impl Server {
    /// Makes the socket in the runtime's home, and serves it. The runtime holds the home.
    pub(crate) fn start(runtime: &Runtime) -> Result<Self, Error> {
        let folder = runtime.home().folder();
        let socket = Socket::make(folder).map_err(at(&folder.join(SOCKET_FILE)))?;
        let socket = Arc::new(socket);
        let state = State { listening: true, ..State::default() };
        let hub = Hub { runtime: runtime.share(), state: Mutex::new(state), ended: Condvar::new() };
        let hub = Arc::new(hub);
        let (theirs, taken) = (Arc::clone(&hub), Arc::clone(&socket));
        let started = spawn("syscap-accept", move || accept(&theirs, &taken));
        started.map_err(at(&folder.join(SOCKET_FILE)))?;
        Ok(Self { hub, socket })
    }

    /// Ends it. New requests are refused, what runs is waited for and then given up, each for a
    /// bounded time; then the connections end, and the socket is removed.
    pub(crate) fn close(&self) {
        let hub = &*self.hub;
        hub.state().closing = true;
        // Where that fails the thread that listens sees the mark with the next connection.
        self.socket.stop().unwrap_or(());
        let until = Instant::now() + DRAIN_TIME;
        hub.tell_closing(until);
        if !hub.wait(until, |state| state.requests == 0) {
            let until = Instant::now() + END_TIME;
            // More than once: what was about to run has no run to give up yet.
            while Instant::now() < until {
                hub.runtime.give_up_runs();
                if hub.wait(Instant::now() + TRY_PAUSE, |state| state.requests == 0) {
                    break;
                }
            }
        }
        let seats: Vec<_> = hub.state().seats.values().map(Arc::clone).collect();
        seats.iter().for_each(|seat| seat.peer.break_off());
        let gone =
            |state: &State| state.seats.is_empty() && state.requests == 0 && !state.listening;
        hub.wait(Instant::now() + END_TIME, gone);
        // One that stays is as one that a holder left that was killed.
        self.socket.remove().unwrap_or(());
    }
}

/// Takes connections until the socket is stopped.
fn accept(hub: &Arc<Hub>, socket: &Socket) {
    loop {
        let taken = socket.accept();
        if hub.state().closing {
            break;
        }
        match taken {
            Ok(stream) => hub.admit(stream),
            // Too many open files, or a connection that has gone already.
            Err(_) => thread::sleep(TRY_PAUSE),
        }
    }
    hub.state().listening = false;
    hub.ended.notify_all();
}

impl Hub {
    /// Lets a process of our own user in. Any other gets no answer at all.
    fn admit(self: &Arc<Self>, stream: UnixStream) {
        let counters = self.runtime.counters();
        if !is_ours(&stream).unwrap_or(false) {
            counters.foreign();
            return;
        }
        let stream = Arc::new(stream);
        let (Ok(reader), Ok(peer)) = (Reader::new(Arc::clone(&stream)), Peer::new(stream)) else {
            return;
        };
        let mut state = self.state();
        if state.seats.len() >= CONNECTIONS_MAX {
            drop(state);
            peer.answer(0, &Reply::refused(Reason::Overloaded));
            return;
        }
        state.last = state.last.saturating_add(1);
        let seat = Arc::new(Seat::new(ConnectionId(state.last), peer));
        state.seats.insert(seat.number, Arc::clone(&seat));
        drop(state);
        counters.connected();
        let attached = Attached { hub: Arc::clone(self), seat };
        let started = spawn("syscap-attached", move || attached.hub.serve(&attached.seat, reader));
        // Where there is no thread to be had it has left already.
        started.unwrap_or(());
    }

    /// Reads what a process asks, until its connection ends or it breaks a rule.
    fn serve(self: &Arc<Self>, seat: &Arc<Seat>, mut reader: Reader) {
        let greeted = reader.next(Some(HELLO_TIME)).and_then(|frame| self.greet(seat, &frame));
        if greeted.is_ok() {
            while let Ok(frame) = reader.next(None) {
                if self.take(seat, frame).is_err() {
                    break;
                }
            }
        }
    }

    /// The first frame says which version the process speaks.
    fn greet(&self, seat: &Seat, frame: &[u8]) -> Result<(), Broken> {
        let Frame::Asked(id, op, fields) = Frame::read(frame)? else { return Err(Broken::Form) };
        // Another version may say more, or say it otherwise.
        let version = fields.look("version").and_then(Item::as_uint);
        if op == "hello" && version.is_some_and(|version| version != PROTOCOL_VERSION) {
            seat.peer.answer(id, &Reply::Failed(Failure::Version(PROTOCOL_VERSION)));
            return Err(Broken::Form);
        }
        let Ask::Hello { .. } = Ask::read(op, fields)? else { return Err(Broken::Form) };
        let greeting = Greeting {
            home: self.runtime.id(),
            version: PROTOCOL_VERSION,
            connection: seat.number.0,
        };
        seat.peer.answer(id, &Reply::Done(greeting.write()));
        Ok(())
    }

    /// Takes one frame: hands an answer on, begins to work on a request.
    fn take(self: &Arc<Self>, seat: &Arc<Seat>, frame: Vec<u8>) -> Result<(), Broken> {
        let bytes = frame.len();
        let (id, ask) = match Frame::read(&frame)? {
            Frame::Replied(id, reply) => return seat.peer.settle(id, reply),
            Frame::Asked(id, op, fields) => (id, Ask::read(op, fields)?),
        };
        drop(frame);
        let call = matches!(ask, Ask::Call { .. });
        if let Err(reason) = self.begin(seat, bytes, call) {
            seat.peer.answer(id, &Reply::refused(reason));
            return Ok(());
        }
        let begun = Begun { hub: Arc::clone(self), seat: Arc::clone(seat), bytes, call };
        let started = spawn("syscap-request", move || {
            let reply = caught(|| begun.seat.work(&begun.hub.runtime, ask));
            let reply = reply.unwrap_or_else(Reply::broke_off);
            begun.seat.peer.answer(id, &reply);
        });
        if started.is_err() {
            seat.peer.answer(id, &Reply::refused(Reason::Overloaded));
        }
        Ok(())
    }

    fn begin(&self, seat: &Seat, bytes: usize, call: bool) -> Result<(), Reason> {
        let mut state = self.state();
        if state.closing {
            return Err(Reason::Closing);
        }
        if (call && state.calls >= CALLS_MAX) || !seat.begin(bytes) {
            return Err(Reason::Overloaded);
        }
        state.requests = state.requests.saturating_add(1);
        state.calls = state.calls.saturating_add(usize::from(call));
        Ok(())
    }

    /// A connection has ended.
    fn leave(&self, seat: &Seat) {
        seat.peer.finish();
        let closing = self.state().closing;
        // A home that closes ends all sessions at once.
        let sessions = if closing { Sessions::Left } else { Sessions::Ended };
        caught(|| seat.leave(&self.runtime, sessions)).unwrap_or(());
        self.state().seats.remove(&seat.number);
        self.runtime.counters().disconnected();
        self.ended.notify_all();
    }

    /// Tells everybody to ask nothing more, and waits until they have heard: what they asked
    /// before that has arrived by then.
    fn tell_closing(&self, until: Instant) {
        let seats: Vec<_> = self.state().seats.values().map(Arc::clone).collect();
        let (heard, hears) = std::sync::mpsc::channel();
        for seat in seats {
            let heard = heard.clone();
            // One that does not read must not keep the others from hearing.
            let told = spawn("syscap-closing", move || {
                let told = seat.peer.ask(|id| Order::Closing.write(id));
                drop(told.map(|pending| pending.wait_for(DRAIN_TIME)));
                drop(heard);
            });
            drop(told);
        }
        drop(heard);
        // Nothing is ever sent: it ends when all have heard.
        hears.recv_timeout(until.saturating_duration_since(Instant::now())).unwrap_or(());
    }

    /// Waits until it is so; says whether it is.
    fn wait(&self, until: Instant, so: impl Fn(&State) -> bool) -> bool {
        let mut state = self.state();
        while !so(&state) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.ended.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step that can't break off half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process that is attached; it leaves also where its thread panics.
struct Attached {
    hub: Arc<Hub>,
    seat: Arc<Seat>,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.hub.leave(&self.seat);
    }
}

/// A request that is worked on; counted off also where the work panics.
struct Begun {
    hub: Arc<Hub>,
    seat: Arc<Seat>,
    bytes: usize,
    call: bool,
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.seat.end(self.bytes);
        let mut state = self.hub.state();
        state.requests = state.requests.saturating_sub(1);
        state.calls = state.calls.saturating_sub(usize::from(self.call));
        drop(state);
        self.hub.ended.notify_all();
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}
