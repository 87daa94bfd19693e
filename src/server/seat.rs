//! One attached process, as the holder has it: its sessions, its tools, its requests in flight.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use syscap_format::{Reason, Refused, Seq, ToolId, ToolResult};

use crate::Error;
use crate::driver::backoff::Backoff;
use crate::driver::guard::caught;
use crate::driver::pool;
use crate::inspect::view::{Stamp, ToolDetail, View, manifests};
use crate::server::lend::{Lent, SessionTicket};
use crate::server::{Holding, LocalSession};
use crate::tools::provide::{Cancel, Offer, Offered, Provider, Standing};
use crate::tools::{ConnectionId, MANIFEST_BYTES_MAX, Withdrawn};
use crate::transport::limits::{
    ANSWERS_BYTES_MAX, END_TIME, REQUEST_BYTES_MAX, REQUESTS_MAX, SESSIONS_MAX, TOOLS_MAX,
    TRY_PAUSE,
};
use crate::transport::message::{
    Aborted, AgentAsk, Ask, Begin, Call, Charge, Heard, Opening, Prompted, Proposed, Provided,
    Settle,
};
use crate::transport::peer::Peer;
use crate::transport::relay::Relay;
use crate::transport::reply::{Answered, Leave, Offers, Reply, Taken};
use crate::transport::turn::PeerCall;
use crate::transport::wire::Broken;

/// A request of a connected process.
pub(crate) enum Asked {
    Agent(AgentAsk),
    Operator(Ask),
}

/// An attached process.
pub(crate) struct Seat {
    /// The bytes of answers that wait to be written.
    answers: AtomicUsize,
    pub(crate) number: ConnectionId,
    pub(crate) peer: Arc<Peer>,
    provider: Arc<dyn Provider>,
    /// The sessions that this server's connections have delegated.
    lent: Arc<Lent>,
    state: Mutex<State>,
    /// The lock under which its offers change one step at a time: they are counted exactly.
    offering: Mutex<()>,
    /// True if it was admitted, and its protocol version is agreed.
    pub(crate) greeted: AtomicBool,
    /// When it asked something last, in the order of all that was asked.
    pub(crate) asked: AtomicU64,
    /// True if it has disconnected.
    left: AtomicBool,
    /// How often it was refused what no session is asked for.
    pub(crate) backoff: Backoff,
}

/// The fate of the sessions of a disconnected process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sessions {
    /// They end.
    Ended,
    /// They are left to the end of the home, which is near.
    Left,
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<Seq, Arc<LocalSession>>,
    /// The calls that are out, by the ids of the requests.
    calls: BTreeMap<u64, Cancel>,
    /// The tools that it offers, each with the length of its manifest in bytes.
    tools: BTreeMap<ToolId, usize>,
    requests: usize,
    bytes: usize,
}

impl Seat {
    pub(crate) fn new(number: ConnectionId, peer: Peer, lent: Arc<Lent>) -> Self {
        let peer = Arc::new(peer);
        let provider = Arc::new(Relay { peer: Arc::clone(&peer) });
        let (state, offering) = (Mutex::default(), Mutex::default());
        let (greeted, left) = (AtomicBool::new(false), AtomicBool::new(false));
        let (asked, answers) = (AtomicU64::new(0), AtomicUsize::new(0));
        let backoff = Backoff::default();
        Self {
            answers,
            number,
            peer,
            provider,
            lent,
            state,
            offering,
            greeted,
            asked,
            left,
            backoff,
        }
    }

    /// Room for one more request of so many bytes.
    pub(crate) fn begin(&self, bytes: usize) -> bool {
        let mut state = self.state();
        let fits =
            state.requests < REQUESTS_MAX && state.bytes.saturating_add(bytes) <= REQUEST_BYTES_MAX;
        if fits {
            state.requests = state.requests.saturating_add(1);
            state.bytes = state.bytes.saturating_add(bytes);
        }
        fits
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
        let session = session.and_then(|session| self.state().sessions.get(&session).cloned());
        session.inspect(|session| session.backoff().wait());
    }

    /// True if it has this session.
    pub(crate) fn has(&self, session: Seq) -> bool {
        self.state().sessions.contains_key(&session)
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
        &self,
        runtime: &Holding,
        id: u64,
        asked: Asked,
        done: impl FnOnce(Reply) + Send + 'static,
    ) {
        let reply = match asked {
            Asked::Agent(AgentAsk::Call(call)) => {
                return self.call(id, *call, |answer| done(Reply::of(answer.map(Answered))));
            }
            Asked::Agent(AgentAsk::Take(ticket)) => Reply::of(self.take(runtime, &ticket)),
            Asked::Agent(AgentAsk::Cancel(call)) => {
                self.cancel(call);
                Reply::nothing()
            }
            Asked::Agent(AgentAsk::Close(session)) => Reply::of(self.close(runtime, session)),
            Asked::Operator(ask) => self.operators(runtime, ask),
        };
        done(reply);
    }

    fn operators(&self, runtime: &Holding, ask: Ask) -> Reply {
        match ask {
            Ask::Issue(grant) => Reply::of(runtime.issue(*grant)),
            Ask::Register(wire) => Reply::of(runtime.register(&wire)),
            Ask::Policy(object) => Reply::of(runtime.set_policy_object(&object)),
            Ask::Shadow(object) => Reply::of(runtime.set_shadow_object(&object)),
            Ask::NoShadow => Reply::of(runtime.clear_shadow()),
            Ask::Open(Opening { agent, token }) => {
                Reply::of(self.open(runtime, || runtime.session(&agent, token)))
            }
            Ask::Lend(session) => Reply::of(self.lend(runtime, session)),
            Ask::Charge(Charge { session, amounts }) => {
                let session = self.session(session);
                Reply::of(session.and_then(|session| session.charge(amounts)))
            }
            Ask::Abort(Aborted { session, intent }) => {
                let session = self.session(session);
                Reply::of(session.and_then(|session| session.cancel(intent)))
            }
            Ask::Propose(proposed) => Reply::of(self.propose(*proposed)),
            Ask::Provide(tools) => {
                Reply::of(self.provide(runtime, tools).map(|list| Offers { list }))
            }
            Ask::Withdraw(tools) => {
                self.withdraw(runtime, &tools);
                Reply::nothing()
            }
            Ask::Accept(tools) => Reply::of(runtime.accept(&tools)),
            Ask::AcceptAs(tools) => Reply::of(runtime.accept_as(&tools)),
            Ask::Forget(tools) => Reply::of(runtime.forget(&tools)),
            Ask::Configure(change) => Reply::of(runtime.configure(&change)),
            Ask::ReadPolicy(document) => match runtime.read_policy(&document) {
                // Who asked reads it too, and says in its own words what is wrong with it.
                Err(Error::Policy(error)) => {
                    let refused = Refused::new(Reason::BadPolicy).field(&error.place);
                    Reply::Refused(refused.got(&error.to_string()))
                }
                read => Reply::of(read.map(drop)),
            },
            Ask::Submit(submission) => Reply::of(runtime.submit_with(&submission)),
            Ask::Purge => Reply::of(runtime.purge()),
            Ask::Begin(asked) => {
                let Begin { token, used, manifest } = *asked;
                let begun = runtime.desk().begin(runtime, token, used, manifest);
                Reply::of(begun.map(Leave::from))
            }
            Ask::Settle(asked) => {
                let Settle { token, used, reported } = *asked;
                Reply::of(runtime.desk().settle(runtime, token, &used, reported).map(Answered))
            }
            Ask::Heard(said) => {
                let Heard { session, text, label } = *said;
                let session = self.session(session);
                Reply::of(session.and_then(|session| session.heard(&text, label)))
            }
            Ask::Prompted(said) => {
                let Prompted { token, prompt } = *said;
                Reply::of(runtime.desk().heard(runtime, token, &prompt))
            }
            Ask::View => Reply::done(&View::of(runtime)),
            Ask::ViewOf(looked) => {
                Reply::done(&View::of_agent(runtime, &looked.agent, looked.token))
            }
            Ask::Stamp => Reply::done(&Stamp::of(runtime)),
            Ask::Tool(tool) => Reply::of(ToolDetail::of(runtime, &tool)),
            Ask::Manifests(whose) => Reply::done(&manifests(runtime, whose)),
        }
    }

    /// The process has gone: its tools are nobody's, its runs are given up, its sessions end.
    pub(crate) fn leave(&self, runtime: &Holding, sessions: Sessions) {
        self.left.store(true, Ordering::SeqCst);
        // What a host has hung on any of it may panic; the rest is done all the same.
        caught(|| runtime.withdraw(self.number, Withdrawn::All)).unwrap_or(());
        let calls: Vec<Cancel> = self.state().calls.values().cloned().collect();
        calls.iter().for_each(Cancel::cancel);
        let mut open = std::mem::take(&mut self.state().sessions);
        let lent = self.lent.take_all(self.number);
        open.extend(lent.into_iter().map(|session| (session.number(), session)));
        caught(|| self.give_up(runtime, &open)).unwrap_or(());
        if sessions == Sessions::Ended {
            for session in open.values() {
                // Where the kernel has stopped there is nothing to end any more.
                drop(caught(|| session.end()));
            }
        }
    }

    /// Abandons the runs of these sessions. A call that was about to run when the process went is
    /// given up too, if it begins soon.
    fn give_up(&self, runtime: &Holding, sessions: &BTreeMap<Seq, Arc<LocalSession>>) {
        let since = Instant::now();
        loop {
            sessions.keys().for_each(|session| runtime.unbind(*session));
            let idle = sessions.is_empty() || self.state().requests == 0;
            if idle || since.elapsed() > END_TIME {
                return;
            }
            thread::sleep(TRY_PAUSE);
        }
    }

    fn open(
        &self,
        runtime: &Holding,
        open: impl FnOnce() -> Result<LocalSession, Error>,
    ) -> Result<Seq, Error> {
        self.check_room()?;
        self.seat(runtime, Arc::new(open()?))
    }

    fn check_room(&self) -> Result<(), Error> {
        match self.state().sessions.len() {
            SESSIONS_MAX.. => Err(Error::Refused(Refused::new(Reason::TooManySessions))),
            _ => Ok(()),
        }
    }

    /// The session is this process's from here on.
    fn seat(&self, runtime: &Holding, session: Arc<LocalSession>) -> Result<Seq, Error> {
        let number = session.number();
        runtime.bind(number, self.number);
        self.state().sessions.insert(number, session);
        if self.left.load(Ordering::SeqCst) {
            // It left meanwhile, and whoever saw to that may have missed this one.
            self.close(runtime, number)?;
        }
        Ok(number)
    }

    /// Gives a session away, to whoever has the ticket.
    fn lend(&self, runtime: &Holding, session: Seq) -> Result<SessionTicket, Error> {
        let taken = self.state().sessions.remove(&session).ok_or_else(no_session)?;
        let lent = self.lent.lend(runtime, self.number, Arc::clone(&taken));
        if lent.is_err() {
            self.seat(runtime, taken)?;
        } else if self.left.load(Ordering::SeqCst) {
            // It left meanwhile, and whoever saw to that may have missed this one.
            for session in self.lent.take_all(self.number) {
                runtime.unbind(session.number());
                session.end()?;
            }
        }
        lent
    }

    /// Takes a session that was lent. A ticket that opens none tells nothing of why.
    fn take(&self, runtime: &Holding, ticket: &SessionTicket) -> Result<Taken, Error> {
        self.check_room()?;
        let session = self.lent.take(ticket).ok_or_else(no_ticket)?;
        let (agent, token) = (session.agent().clone(), session.token());
        Ok(Taken { session: self.seat(runtime, session)?, agent, token })
    }

    fn close(&self, runtime: &Holding, session: Seq) -> Result<Seq, Error> {
        let taken = self.state().sessions.remove(&session);
        let taken = taken.ok_or_else(no_session)?;
        runtime.unbind(session);
        taken.end()
    }

    /// Makes a call, and tells `done` the answer, on this thread or on another.
    pub(crate) fn call(
        &self,
        id: u64,
        Call { session, sent }: Call,
        done: impl FnOnce(Result<ToolResult, Error>) + Send + 'static,
    ) {
        let cancel = self.state().calls.get(&id).cloned().unwrap_or_default();
        match self.session(session) {
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

    fn propose(&self, proposed: Proposed) -> Result<crate::Changed, Error> {
        let Proposed { session, writer, inputs, base, changes } = proposed;
        self.session(session)?.change(writer, inputs, changes, base)
    }

    fn provide(&self, runtime: &Holding, tools: Vec<Provided>) -> Result<Vec<Offer>, Error> {
        let _one_at_a_time = self.offering();
        let size = |tool: &Provided| tool.manifest.to_bytes().len();
        let sizes: Vec<usize> = tools.iter().map(size).collect();
        let mut offered = self.state().tools.clone();
        let names = tools.iter().map(|tool| tool.manifest.tool.clone());
        offered.extend(names.zip(sizes.iter().copied()));
        let bytes = offered.values().fold(0, |sum: usize, bytes| sum.saturating_add(*bytes));
        if offered.len() > TOOLS_MAX || bytes > MANIFEST_BYTES_MAX {
            return Err(Error::TooManyTools);
        }
        let tools = tools.into_iter().map(Offered::from).collect();
        let offers = runtime.provide(self.number, tools, &self.provider)?;
        let mut state = self.state();
        for (offer, size) in offers.iter().zip(sizes) {
            if offer.standing != Standing::Taken {
                state.tools.insert(offer.tool().clone(), size);
            }
        }
        drop(state);
        if self.left.load(Ordering::SeqCst) {
            runtime.withdraw(self.number, Withdrawn::All);
        }
        Ok(offers)
    }

    fn withdraw(&self, runtime: &Holding, tools: &[ToolId]) {
        let _one_at_a_time = self.offering();
        self.state().tools.retain(|tool, _| !tools.contains(tool));
        runtime.withdraw(self.number, Withdrawn::These(tools));
    }

    fn session(&self, session: Seq) -> Result<Arc<LocalSession>, Error> {
        self.state().sessions.get(&session).map(Arc::clone).ok_or_else(no_session)
    }

    fn offering(&self) -> MutexGuard<'_, ()> {
        self.offering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step that can't break off half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_session() -> Error {
    Error::Refused(Refused::new(Reason::NoSession).field("session"))
}

fn no_ticket() -> Error {
    Error::Refused(Refused::new(Reason::NotBound).field("ticket"))
}
