//! The holder's side: who comes in, what is worked on, and how it closes.
//!
//! One thread takes connections, one reads each, and each request has a thread of its own, but for
//! a call that comes alone, which the thread makes that has read it (`turn`). An operator's frames
//! that never change are worked on by the thread that reads them too, so that they need no room.
//! None of them holds anything of the kernel's while it waits for a peer.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use syscap_format::{AgentId, Reason, Seq};

use crate::Error;
use crate::driver::guard::caught;
use crate::error::at;
use crate::server::Holding;
use crate::server::client::Sessions;
use crate::server::seat::Seat;
use crate::server::shares::who_gives_up;
use crate::server::uses::Uses;
use crate::server::waits;
use crate::tools::ConnectionId;
use crate::transport::frame::Message as _;
use crate::transport::frozen::{Command, HolderStatus, Phase, Response, Said};
use crate::transport::hello::{Greeting, Hello, Lane, is_frozen};
use crate::transport::limits::{
    AGENTS_CONNECTIONS_MAX, AGENTS_FRAME_BYTES_MAX, CONNECTIONS_MAX, DRAIN_TIME, END_TIME,
    FRAME_BYTES_MAX, HELLO_TIME, THREADS_MAX, TRY_PAUSE, UNPLACED_MAX,
};
use crate::transport::message::Order;
use crate::transport::peer::Peer;
use crate::transport::socket::{SOCKET_FILE, Socket, is_ours};
use crate::transport::turn::{self, PeerCall, Reads};
use crate::transport::versions::Versions;
use crate::transport::wire::{Broken, Partial, Reader};

/// The pause between two looks whether the last one has gone.
const MOMENT: Duration = Duration::from_millis(2);

/// Serves a runtime to the processes that attach to its home.
pub(crate) struct Server {
    hub: Arc<Hub>,
    socket: Arc<Socket>,
}

/// The state that the server's threads share.
pub(crate) struct Hub {
    pub(crate) runtime: Holding,
    /// Closes the home, as its owner would. An operator may ask for it.
    shut_down: Box<dyn Fn() + Send + Sync>,
    /// One for each channel.
    operators_partial: Arc<Partial>,
    agents_partial: Arc<Partial>,
    state: Mutex<State>,
    /// Told when something ends.
    pub(crate) ended: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    seats: BTreeMap<ConnectionId, Arc<Seat>>,
    /// Admitted connections, by channel.
    pub(crate) placed: BTreeMap<ConnectionId, Lane>,
    /// Connections among them that have had a session, each with the agent of the first one, or have
    /// offered tools.
    pub(crate) settled: BTreeMap<ConnectionId, Option<AgentId>>,
    /// How many ask for their first session, or to offer their first tools.
    pub(crate) settling: usize,
    /// How often somebody asked something.
    pub(crate) asks: u64,
    /// Connections that were not admitted and wait for no answer: their next message must be a
    /// greeting.
    unplaced: BTreeSet<ConnectionId>,
    last: u64,
    /// True if new requests are refused.
    pub(crate) closing: bool,
    /// The connections that asked for a shutdown, each with its request id. They are told when it
    /// has come to it.
    asked: BTreeMap<ConnectionId, u64>,
    /// Requests that are worked on.
    pub(crate) requests: usize,
    /// The number of calls among them.
    pub(crate) calls: usize,
    /// How long those requests are together, in bytes.
    pub(crate) bytes: usize,
    /// True if connections are accepted.
    listening: bool,
    /// How many wait until something ends.
    pub(crate) waiting: usize,
}

impl State {
    /// Takes away the connection that has been silent longest, of those on these lanes that have
    /// nothing here.
    fn take_idle(&mut self, lanes: &[Lane]) -> Option<Arc<Seat>> {
        let places = self.placed.iter().filter(|(_, lane)| lanes.contains(lane));
        let free = places.filter(|(number, _)| !self.settled.contains_key(number));
        let seats = free.filter_map(|(number, _)| self.seats.get(number));
        let waits = |seat: &&Arc<Seat>| self.asked.contains_key(&seat.number);
        let idle = seats.filter(|seat| seat.is_idle() && !waits(seat));
        let oldest = idle.min_by_key(|seat| seat.asked.load(Ordering::SeqCst)).map(Arc::clone)?;
        self.placed.remove(&oldest.number);
        Some(oldest)
    }

    /// How many connections on these channels have had a session, or have offered tools.
    pub(crate) fn settled_on(&self, lanes: &[Lane]) -> usize {
        self.settled.keys().filter(|number| self.is_on(number, lanes)).count()
    }

    fn is_on(&self, number: &ConnectionId, lanes: &[Lane]) -> bool {
        self.placed.get(number).is_some_and(|lane| lanes.contains(lane))
    }

    /// Takes a connection on these channels away for one of an agent: from the agent that has most
    /// with a session, those with nothing in flight first, then the one that was silent longest. It
    /// takes no agent's last; `None` if the one that asks has most itself.
    pub(crate) fn take_from_most(&mut self, asking: &AgentId, lanes: &[Lane]) -> Option<Arc<Seat>> {
        let there = || self.settled.iter().filter(|(number, _)| self.is_on(number, lanes));
        let owners = there().filter_map(|(_, agent)| agent.as_ref());
        let from = who_gives_up(owners, asking).filter(|from| *from != asking)?;
        let own = there().filter(|(_, agent)| agent.as_ref() == Some(from));
        let seats = own.filter_map(|(number, _)| self.seats.get(number));
        let order = |seat: &&Arc<Seat>| (!seat.is_idle(), seat.asked.load(Ordering::SeqCst));
        let gone = seats.min_by_key(order).map(Arc::clone)?;
        self.placed.remove(&gone.number);
        self.settled.remove(&gone.number);
        Some(gone)
    }

    /// All connections but those that wait for the home's end.
    fn others(&self, uses: &Uses) -> Vec<Arc<Seat>> {
        let waits = |client| self.asked.contains_key(client) || uses.is_leaving(*client);
        let others = self.seats.iter().filter(|(client, _)| !waits(client));
        others.map(|(_, seat)| Arc::clone(seat)).collect()
    }
}

impl Server {
    /// Makes the socket in the runtime's home, and serves it. The runtime holds the home.
    /// `shut_down` closes it, and this server, as its owner would.
    pub(crate) fn start(
        runtime: &Holding,
        shut_down: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let folder = runtime.home().folder();
        let socket = Socket::make(folder).map_err(at(&folder.join(SOCKET_FILE)))?;
        let socket = Arc::new(socket);
        let state = State { listening: true, ..State::default() };
        let hub = Hub {
            runtime: runtime.share(),
            shut_down: Box::new(shut_down),
            operators_partial: Arc::default(),
            agents_partial: Arc::default(),
            state: Mutex::new(state),
            ended: Condvar::new(),
        };
        let hub = Arc::new(hub);
        let (theirs, taken) = (Arc::clone(&hub), Arc::clone(&socket));
        let started = spawn("syscap-accept", move || accept(&theirs, &taken));
        started.map_err(at(&folder.join(SOCKET_FILE)))?;
        Ok(Self { hub, socket })
    }

    /// Ends it. New requests are refused, what runs is waited for and then given up, each for a
    /// bounded time; then the connections end, and the socket is removed. Connections that asked
    /// for the shutdown stay until they are [told](Self::tell_closed).
    pub(crate) fn close(&self) {
        let hub = &*self.hub;
        let uses = hub.runtime.uses();
        hub.state().closing = true;
        uses.close();
        waits::ring(&hub.runtime.core);
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
        let others = hub.state().others(uses);
        others.iter().for_each(|seat| seat.peer.break_off());
        let gone = |state: &State| {
            state.others(uses).is_empty() && state.requests == 0 && !state.listening
        };
        hub.wait(Instant::now() + END_TIME, gone);
        // One that stays is as one that a holder left that was killed.
        self.socket.remove().unwrap_or(());
    }

    /// Waits until nobody uses the home any more and it is to be served no longer, for so long at most;
    /// says whether it is so: then nobody can connect.
    pub(crate) fn wait_unused(&self, limit: Duration) -> bool {
        let (uses, since, mut pause) = (self.hub.runtime.uses(), Instant::now(), MOMENT);
        loop {
            let moves = uses.moves();
            if self.stop_if_unused() {
                return true;
            }
            let left = limit.saturating_sub(since.elapsed());
            if left.is_zero() {
                return false;
            }
            // What the last one asked is answered in a moment; what runs may take longer.
            match uses.are_over() {
                true => uses.wait(moves, left.min(pause)),
                false => uses.wait(moves, left),
            }
            pause = pause.saturating_mul(2);
        }
    }

    /// Stops listening where nobody uses the home any more and it is to be served no longer; says
    /// whether it did. The socket goes in the step in which that is seen: who is accepted meanwhile
    /// hears that it closes, and finds no server when it dials again.
    fn stop_if_unused(&self) -> bool {
        let hub = &*self.hub;
        let uses = hub.runtime.uses();
        let (in_vain, are_over) = (uses.in_vain(), uses.are_over());
        let runs = are_over && hub.runtime.is_running();
        let mut state = hub.state();
        for client in in_vain {
            if let Some(seat) = state.seats.get(&client) {
                seat.peer.break_off();
            }
        }
        // What the last one asked is answered first.
        let asks = state.requests > 0 || !state.placed.keys().all(|one| uses.is_leaving(*one));
        if !are_over || runs || asks {
            return false;
        }
        state.closing = true;
        // One that stays is as one that a server left that was killed.
        self.socket.remove().unwrap_or(());
        true
    }

    /// Tells those that have asked for it what came of closing the home, and lets them go.
    pub(crate) fn tell_closed(&self, closed: &Result<Seq, Error>) {
        let asked: Vec<_> = {
            let mut state = self.hub.state();
            for client in self.hub.runtime.uses().let_go() {
                if let Some(seat) = state.seats.get(&client) {
                    seat.peer.break_off();
                }
            }
            let asked = std::mem::take(&mut state.asked);
            let seat = |(number, id)| Some((Arc::clone(state.seats.get(&number)?), id));
            asked.into_iter().filter_map(seat).collect()
        };
        for (seat, id) in asked {
            seat.peer.tell(&Response::of(closed).write(id));
            seat.peer.break_off();
        }
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
    /// Takes a connection of our own user. Any other gets no answer at all.
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
        let waits = state.unplaced.len() >= UNPLACED_MAX;
        let oldest = if waits { state.unplaced.pop_first() } else { None };
        let oldest = oldest.and_then(|oldest| state.seats.get(&oldest)).map(Arc::clone);
        if state.seats.len() < THREADS_MAX {
            state.last = state.last.saturating_add(1);
            let seat = Seat::new(ConnectionId(state.last), peer);
            let seat = Arc::new(seat);
            state.seats.insert(seat.number, Arc::clone(&seat));
            state.unplaced.insert(seat.number);
            drop(state);
            counters.connected();
            let attached = Attached { hub: Arc::clone(self), seat };
            let serve = move || serve(attached, reader);
            // Where there is no thread to be had it has left already.
            spawn("syscap-attached", serve).unwrap_or(());
        } else {
            drop(state);
        }
        if let Some(oldest) = oldest {
            oldest.peer.break_off();
        }
    }

    /// Lets a process in whose first frame is a good hello. Until then, and where the hello is
    /// refused, an operator's frames that never change are taken and nothing else: they need
    /// neither a version nor room.
    fn greet(self: &Arc<Self>, seat: &Arc<Seat>, reader: &mut Reader) -> Result<Lane, Broken> {
        let mut first = true;
        loop {
            // Who waits for the home's end has nothing more to say.
            let waits = self.state().asked.contains_key(&seat.number);
            let frame = reader.next((!waits).then_some(HELLO_TIME))?;
            match Said::read(&frame)? {
                Said::Hello(hello) if first => match self.place(seat, hello) {
                    Ok((version, lane)) => {
                        let home = self.runtime.id();
                        seat.peer.tell(&Greeting::Welcome { version, home }.write());
                        seat.greeted.store(true, Ordering::SeqCst);
                        return Ok(lane);
                    }
                    Err(reason) => {
                        seat.peer.tell(&Greeting::turned_away(reason).write());
                        if hello.lane != Some(Lane::Operator) {
                            return Err(Broken::Form);
                        }
                    }
                },
                said => {
                    // It is not told to end while it waits for its answer.
                    self.state().unplaced.remove(&seat.number);
                    self.operate(seat, Lane::Operator, said)?;
                    let mut state = self.state();
                    if !state.asked.contains_key(&seat.number) {
                        state.unplaced.insert(seat.number);
                    }
                }
            }
            first = false;
        }
    }

    /// A place for one who says hello, and the version that is spoken with it.
    fn place(&self, seat: &Seat, hello: Hello) -> Result<(u64, Lane), Reason> {
        let version = Versions::OURS.common(hello.versions).ok_or(Reason::UnknownVersion)?;
        let lane = hello.lane.ok_or(Reason::WrongLane)?;
        // An agent takes nobody's place but an agent's.
        let (most, lanes) = match lane {
            Lane::Operator => (CONNECTIONS_MAX, &[Lane::Operator, Lane::Agents][..]),
            Lane::Agents => (AGENTS_CONNECTIONS_MAX, &[Lane::Agents][..]),
        };
        let mut state = self.state();
        if state.closing {
            return Err(Reason::Closing);
        }
        // One that is not there any more was told to end, for another.
        if !state.unplaced.contains(&seat.number) {
            return Err(Reason::Overloaded);
        }
        let idle = match state.placed.len() >= most {
            true => Some(state.take_idle(lanes).ok_or(Reason::Overloaded)?),
            false => None,
        };
        state.unplaced.remove(&seat.number);
        state.asks = state.asks.saturating_add(1);
        seat.asked.store(state.asks, Ordering::SeqCst);
        state.placed.insert(seat.number, lane);
        drop(state);
        if let Some(idle) = idle {
            // It attaches again where it has anything to ask.
            idle.peer.break_off();
        }
        Ok((version, lane))
    }

    /// Does what an operator asks by a frame that never changes.
    fn operate(self: &Arc<Self>, seat: &Arc<Seat>, lane: Lane, said: Said) -> Result<(), Broken> {
        // Hello is said once, and first.
        let Said::Asked(id, command) = said else { return Err(Broken::Form) };
        // Nobody takes its place meanwhile.
        seat.hold();
        let runtime = &self.runtime;
        let answer = match command {
            _ if lane != Lane::Operator => Response::refused(Reason::WrongLane),
            Err(reason) => Response::refused(reason),
            Ok(Command::Shutdown) => {
                let asked = self.ask_shutdown(seat, id);
                seat.end(0);
                return asked;
            }
            // By the first one, of id 0, a program finds out whose home it is.
            Ok(Command::Status) => match runtime.may_act() {
                Err(busy) if id != 0 => Response::refused(busy.reason()),
                _ => Response::Status(self.status()),
            },
            Ok(command) => self.act(|| runtime.stop(&command)),
        };
        seat.peer.tell(&answer.write(id));
        seat.end(0);
        Ok(())
    }

    /// Does something that the home's end waits for. It needs no room.
    fn act(&self, act: impl FnOnce() -> Result<Seq, Error>) -> Response {
        let mut state = self.state();
        if state.closing {
            return Response::refused(Reason::Closing);
        }
        state.requests = state.requests.saturating_add(1);
        drop(state);
        let acted = caught(act).unwrap_or(Err(Error::BrokeOff));
        let mut state = self.state();
        state.requests = state.requests.saturating_sub(1);
        drop(state);
        self.ended.notify_all();
        Response::of(&acted)
    }

    fn status(&self) -> HolderStatus {
        let status = self.runtime.look(HolderStatus::of);
        match status.phase {
            Phase::Open if self.state().closing => HolderStatus { phase: Phase::Closing, ..status },
            _ => status,
        }
    }

    /// Begins to close the home. The answer comes when it is closed.
    fn ask_shutdown(self: &Arc<Self>, seat: &Seat, id: u64) -> Result<(), Broken> {
        // Of a connection one is enough.
        if self.state().asked.insert(seat.number, id).is_some() {
            return Err(Broken::Form);
        }
        let (hub, number, peer) = (Arc::clone(self), seat.number, Arc::clone(&seat.peer));
        // This thread reads what the home's end may wait for.
        let started = spawn("syscap-shutdown", move || {
            (hub.shut_down)();
            // It was closed already, and those who had asked before were told.
            if hub.state().asked.remove(&number).is_some() {
                peer.break_off();
            }
        });
        if started.is_err() {
            self.state().asked.remove(&seat.number);
            seat.peer.tell(&Response::refused(Reason::Overloaded).write(id));
        }
        Ok(())
    }

    /// A connection has ended.
    fn leave(&self, seat: &Seat) {
        seat.peer.finish();
        let closing = self.state().closing;
        // A home that closes ends all sessions at once.
        let sessions = if closing { Sessions::Left } else { Sessions::Ended };
        caught(|| seat.leave(&self.runtime, sessions)).unwrap_or(());
        // What its tickets have opened ends with it.
        let orphans = self.runtime.lent().gone(seat.number);
        let mut state = self.state();
        for orphan in orphans.iter().filter_map(|orphan| state.seats.get(orphan)) {
            orphan.peer.break_off();
        }
        state.seats.remove(&seat.number);
        state.placed.remove(&seat.number);
        state.settled.remove(&seat.number);
        state.unplaced.remove(&seat.number);
        state.asked.remove(&seat.number);
        drop(state);
        self.runtime.counters().disconnected();
        self.ended.notify_all();
    }

    /// Tells everybody who was let in to ask nothing more, and waits until they have heard: what
    /// they asked before that has arrived by then.
    fn tell_closing(&self, until: Instant) {
        let mut seats: Vec<_> = self.state().seats.values().map(Arc::clone).collect();
        seats.retain(|seat| seat.greeted.load(Ordering::SeqCst));
        let (heard, hears) = std::sync::mpsc::channel();
        for seat in seats {
            let heard = heard.clone();
            // One that does not read must not keep the others from hearing.
            let told = spawn("syscap-closing", move || {
                let told = seat.peer.ask(|id| Order::Closing.frame(id));
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
            state.waiting = state.waiting.saturating_add(1);
            let waited = self.ended.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            state.waiting = state.waiting.saturating_sub(1);
        }
        true
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
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

/// A reader of one admitted process.
struct Connection {
    attached: Attached,
    reader: Reader,
    lane: Lane,
}

/// Reads what a process asks, until its connection ends or it breaks a rule.
fn serve(attached: Attached, mut reader: Reader) {
    let Ok(lane) = attached.hub.greet(&attached.seat, &mut reader) else { return };
    let (most, partial) = match lane {
        Lane::Operator => (FRAME_BYTES_MAX, &attached.hub.operators_partial),
        Lane::Agents => (AGENTS_FRAME_BYTES_MAX, &attached.hub.agents_partial),
    };
    reader.take_long_frames(most, Arc::clone(partial));
    turn::read(Box::new(Connection { attached, reader, lane }));
}

impl Reads for Connection {
    fn next(&mut self) -> Result<Option<PeerCall>, Broken> {
        let frame = self.reader.next(None)?;
        let Attached { hub, seat } = &self.attached;
        while seat.is_behind() {
            thread::sleep(TRY_PAUSE);
        }
        match is_frozen(&frame) {
            true => Said::read(&frame).and_then(|said| hub.operate(seat, self.lane, said))?,
            false => return hub.take(seat, self.lane, frame),
        }
        Ok(None)
    }

    fn is_alone(&self) -> bool {
        self.reader.is_empty() && self.attached.seat.is_alone()
    }

    fn make_apart(&self, call: PeerCall) {
        self.attached.seat.make_apart(call);
    }

    fn peer(&self) -> &Arc<Peer> {
        &self.attached.seat.peer
    }
}

pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}
