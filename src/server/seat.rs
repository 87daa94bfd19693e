//! One connection, as the process that holds the home has it: what it has in flight, and what it is
//! given room for.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use syscap_format::{AgentId, Reason, Refused, Seq, ToolResult};

use crate::Error;
use crate::driver::backoff::Backoff;
use crate::driver::guard::caught;
use crate::driver::pool;
use crate::runtime::session::Stands;
use crate::server::Holding;
use crate::server::client::{Client, Sessions};
use crate::server::request::{Asked, Request};
use crate::server::waits::Parked;
use crate::tools::ConnectionId;
use crate::tools::provide::Cancel;
use crate::transport::frame::Frame;
use crate::transport::limits::{
    ANSWERS_BYTES_MAX, END_TIME, REQUEST_BYTES_MAX, REQUESTS_MAX, TRY_PAUSE,
};
use crate::transport::message::{Ask, Call};
use crate::transport::peer::Peer;
use crate::transport::relay::Relay;
use crate::transport::reply::{Answered, Reply};
use crate::transport::turn::PeerCall;
use crate::transport::wire::Broken;

/// A connected process.
pub(crate) struct Seat {
    /// The bytes of answers that wait to be written.
    answers: AtomicUsize,
    pub(crate) number: ConnectionId,
    pub(crate) peer: Arc<Peer>,
    client: Client,
    state: Mutex<State>,
    /// True if it was admitted, and its protocol version is agreed.
    pub(crate) greeted: AtomicBool,
    /// When it asked something last, in the order of all that was asked.
    pub(crate) asked: AtomicU64,
    /// True if it has disconnected.
    left: AtomicBool,
    /// How often it was refused what no session is asked for.
    pub(crate) backoff: Backoff,
}

#[derive(Default)]
struct State {
    /// The calls that are out, by the ids of the requests.
    calls: BTreeMap<u64, Cancel>,
    requests: usize,
    bytes: usize,
}

/// More than that is out: how much, and how much may be.
pub(crate) fn full(what: &str, out: usize, most: usize) -> Refused {
    Refused::new(Reason::Overloaded).field(what).got(&out).allowed(&format_args!("at most {most}"))
}

impl Seat {
    pub(crate) fn new(number: ConnectionId, peer: Peer) -> Self {
        let peer = Arc::new(peer);
        let client = Client::new(number, Some(Arc::new(Relay { peer: Arc::clone(&peer) })));
        let state = Mutex::default();
        let (greeted, left) = (AtomicBool::new(false), AtomicBool::new(false));
        let (asked, answers) = (AtomicU64::new(0), AtomicUsize::new(0));
        let backoff = Backoff::default();
        Self { answers, number, peer, client, state, greeted, asked, left, backoff }
    }

    /// Room for one more request of so many bytes; else what there is too much of.
    pub(crate) fn begin(&self, bytes: usize) -> Result<(), Refused> {
        let mut state = self.state();
        let more = state.bytes.saturating_add(bytes);
        if state.requests >= REQUESTS_MAX {
            return Err(full("requests of this connection", state.requests, REQUESTS_MAX));
        }
        if more > REQUEST_BYTES_MAX {
            return Err(full("bytes of this connection's requests", more, REQUEST_BYTES_MAX));
        }
        state.requests = state.requests.saturating_add(1);
        state.bytes = more;
        Ok(())
    }

    /// Takes an answer of the client's to an order. One that can't be read ends its own run, and one to
    /// no order at all nothing; whoever sends many is read more and more slowly.
    pub(crate) fn settle(&self, frame: &Frame<'_>) {
        let reply = Reply::read(frame);
        let is_sound = reply.is_ok();
        let known = self.peer.settle(frame.id, reply.unwrap_or_else(|_| Reply::unreadable()));
        // Of an answer before: it is read by who waits for it.
        if self.peer.was_unreadable() || !is_sound || known.is_err() {
            self.backoff.refused();
            self.hold_up(None);
        }
    }

    /// Something that it asked for needs no room, and is worked on until [`end`](Self::end).
    pub(crate) fn hold(&self) {
        let mut state = self.state();
        state.requests = state.requests.saturating_add(1);
    }

    /// True if none of its requests is being worked on.
    pub(crate) fn is_idle(&self) -> bool {
        self.state().requests == 0
    }

    /// True if at most one of its requests is being worked on.
    pub(crate) fn is_alone(&self) -> bool {
        self.state().requests <= 1
    }

    pub(crate) fn end(&self, bytes: usize) {
        let mut state = self.state();
        state.requests = state.requests.saturating_sub(1);
        state.bytes = state.bytes.saturating_sub(bytes);
    }

    /// A call has come in under this id, which no other may have. From here on it can be given up,
    /// whenever it begins.
    pub(crate) fn expect(&self, id: u64) -> Result<(), Broken> {
        let cancel = Cancel::new();
        match self.state().calls.entry(id) {
            Entry::Occupied(_) => return Err(Broken::Form),
            Entry::Vacant(place) => drop(place.insert(cancel.clone())),
        }
        if self.left.load(Ordering::SeqCst) {
            // It left meanwhile, and whoever saw to that may have missed this one.
            cancel.cancel();
        }
        Ok(())
    }

    /// Cancels the call of this id. It may notify a host's code, and so holds no lock.
    pub(crate) fn cancel(&self, call: u64) {
        let cancel = self.state().calls.get(&call).cloned();
        caught(|| cancel.inspect(Cancel::cancel)).unwrap_or_default();
    }

    /// Waits before one more request is looked at, where those of before were refused: of the
    /// session that it is for, or of none. Called by who reads the connection.
    pub(crate) fn hold_up(&self, session: Option<Seq>) {
        self.backoff.wait();
        let session = session.and_then(|session| self.client.session(session).ok());
        session.inspect(|session| session.backoff().wait());
    }

    /// True if it has this session.
    pub(crate) fn has(&self, session: Seq) -> bool {
        self.client.session(session).is_ok()
    }

    /// An answer of so many bytes waits to be written, or does not any more.
    pub(crate) fn answers(&self, bytes: usize) {
        self.answers.fetch_add(bytes, Ordering::SeqCst);
    }

    pub(crate) fn answered(&self, bytes: usize) {
        self.answers.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// True if its peer must read before it may request more.
    pub(crate) fn is_behind(&self) -> bool {
        self.answers.load(Ordering::SeqCst) > ANSWERS_BYTES_MAX && !self.peer.is_over()
    }

    /// The call of this id is over, or never began.
    pub(crate) fn settled(&self, id: u64) {
        self.state().calls.remove(&id);
    }

    /// Has a request worked on by a thread of the pool; the process is told where there is none.
    pub(crate) fn make_apart(&self, call: PeerCall) {
        if pool::spawn(call.make).is_err() {
            self.peer.answer(call.id, Reply::refused(Reason::Overloaded));
        }
    }

    /// Does what is asked, and tells `done` the answer: on this thread or, of a call that takes
    /// longer than it may, on another.
    pub(crate) fn work(
        self: &Arc<Self>,
        runtime: &Holding,
        id: u64,
        asked: Asked,
        done: impl FnOnce(Reply) + Send + 'static,
    ) {
        match asked {
            Asked::Call(call) => {
                self.call(id, *call, |answer| done(Reply::of(answer.map(Answered))));
            }
            Asked::Request(Request::Wait(awaited)) => {
                let session = self.client.session(awaited.session);
                let limit = session.and_then(|session| Ok((session, awaited.limit()?)));
                let (session, limit) = match limit {
                    Ok(found) => found,
                    Err(error) => return done(Reply::of(Err::<Stands, _>(error))),
                };
                let (seat, number) = (Arc::clone(self), awaited.session);
                let is_there = move || seat.has(number);
                park(runtime, session.agent().clone(), awaited.ask, limit, is_there, done);
            }
            Asked::Request(Request::Operator(Ask::Wait(waits))) => {
                let (seat, limit) = (Arc::clone(self), waits.limit());
                let is_there = move || !seat.peer.is_over();
                park(runtime, waits.agent, waits.ask, limit, is_there, done);
            }
            Asked::Request(request) => done(Reply::made(runtime.serve(&self.client, request))),
            Asked::Cancel(call) => {
                self.cancel(call);
                done(Reply::nothing());
            }
        }
    }

    /// The process has gone: its tools are nobody's, its runs are given up, its sessions end.
    pub(crate) fn leave(&self, runtime: &Holding, sessions: Sessions) {
        self.left.store(true, Ordering::SeqCst);
        self.client.leave(runtime, sessions, |open| {
            let calls: Vec<Cancel> = self.state().calls.values().cloned().collect();
            calls.iter().for_each(Cancel::cancel);
            self.give_up(runtime, open);
        });
    }

    /// Abandons the runs of these sessions. A call that was about to run when the process went is
    /// given up too, if it begins soon.
    fn give_up(&self, runtime: &Holding, sessions: &[Seq]) {
        let since = Instant::now();
        loop {
            sessions.iter().for_each(|session| runtime.unbind(*session));
            let idle = sessions.is_empty() || self.state().requests == 0;
            if idle || since.elapsed() > END_TIME {
                return;
            }
            thread::sleep(TRY_PAUSE);
        }
    }

    /// Makes a call, and tells `done` the answer, on this thread or on another.
    pub(crate) fn call(
        &self,
        id: u64,
        Call { session, sent }: Call,
        done: impl FnOnce(Result<ToolResult, Error>) + Send + 'static,
    ) {
        let cancel = self.state().calls.get(&id).cloned().unwrap_or_default();
        match self.client.session(session) {
            Ok(session) => {
                let counted = Arc::clone(&session);
                session.send_then(sent, &cancel, move |answer| {
                    // The connection isn't read on for that long: nobody's thread waits here.
                    if let Ok(answer) = &answer {
                        counted.backoff().answered(answer);
                    }
                    done(answer);
                });
            }
            Err(error) => done(Err(error)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step that can't break off half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has a call waited for, by no thread.
fn park(
    runtime: &Holding,
    agent: AgentId,
    ask: Seq,
    limit: Duration,
    is_there: impl Fn() -> bool + Send + 'static,
    done: impl FnOnce(Reply) + Send + 'static,
) {
    let until = Instant::now().checked_add(limit).unwrap_or_else(Instant::now);
    let done = Box::new(move |stands| done(Reply::of(stands)));
    let (is_there, read) = (Box::new(is_there), None);
    runtime.park(Parked { agent, ask, until, read, is_there, done });
}
