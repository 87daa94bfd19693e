//! The attached side: asks of the holder, and runs what it offered when the holder asks.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use syscap_format::field::Field;
use syscap_format::{DefinitionHash, HomeId, Reason, Refused, ToolId, ToolResult};

use crate::Error;
use crate::error::at;
use crate::tools::identity;
use crate::tools::provide::{Cancel, HostCall, Offer, Offered, Provider};
use crate::transport::frame::{Carries, Frame, Message};
use crate::transport::frozen::{self, Command, HolderStatus, Phase};
use crate::transport::hello::{Greeting, Hello, Lane, is_frozen};
use crate::transport::incoming::{Incoming, ReadBy, Reading};
use crate::transport::limits::{
    AGENTS_FRAME_BYTES_MAX, ANSWER_TIME, CALL_FRAMING_BYTES, FRAME_BYTES_MAX, HELLO_TIME,
    LEAVE_TIME, REQUESTS_MAX, TOGETHER_BYTES_MAX, TOGETHER_MAX, TRY_PAUSE, TRY_TIME,
};
use crate::transport::message::{AgentAsk, Ask, Call, Order, Provided};
use crate::transport::peer::{Lost, NotSent, Peer, Pending, Unanswered};
use crate::transport::relay;
use crate::transport::reply::{Answered, Offers, Ran, Reply};
use crate::transport::socket::{SOCKET_FILE, connect_to, is_ours};
use crate::transport::versions::Versions;
use crate::transport::wire::{Broken, Reader};

/// The result of a search at a home.
pub(crate) enum Found {
    /// A holder that serves it.
    Holder(Arc<Holder>),
    /// No server.
    Nobody,
    /// One that comes or goes.
    NotNow,
    /// One that has no room.
    Full,
}

/// How to attach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// On a lane, in a version that both sides speak.
    Lane(Lane),
    /// Without either: only an operator's frames that never change are sent.
    Bare,
}

/// The result of a request.
pub(crate) enum Step<T> {
    /// This.
    Done(Result<T, Error>),
    /// Nothing was carried out, and the server is ending: send the request to the next one.
    Again,
}

impl<T> Step<T> {
    pub(crate) fn map<U>(self, done: impl FnOnce(T) -> U) -> Step<U> {
        match self {
            Self::Done(result) => Step::Done(result.map(done)),
            Self::Again => Step::Again,
        }
    }
}

/// The process that holds the home, as an attached one sees it.
pub(crate) struct Holder {
    peer: Peer,
    /// Which home it holds, as it said when it let this process in.
    home: HomeId,
    /// True if it takes no more requests.
    ending: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The providers, by tool and definition. While another is being offered there are two of a
    /// tool.
    providers: BTreeMap<(ToolId, DefinitionHash), Arc<dyn Provider>>,
    /// The runs that the holder has asked for, by the ids of its requests.
    runs: BTreeMap<u64, Cancel>,
}

/// Attaches to the holder of a home, and has what comes from it read by somebody, or by a thread.
/// When the connection ends, `ended` is called: with true where the holder had said that it would.
pub(crate) fn attach(
    home: &Path,
    entry: Entry,
    by: Option<&ReadBy>,
    ended: impl FnOnce(bool) + Send + 'static,
) -> Result<Found, Error> {
    let path = home.join(SOCKET_FILE);
    let stream = match connect_to(home) {
        Ok(stream) => stream,
        Err(error) => {
            return match error.kind() {
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => Ok(Found::Nobody),
                _ => Err(at(&path)(error)),
            };
        }
    };
    if !is_ours(&stream).map_err(at(&path))? {
        return Err(Error::Foreign(home.to_path_buf()));
    }
    let stream = Arc::new(stream);
    let peer = Peer::new(Arc::clone(&stream)).map_err(at(&path))?;
    let mut reader = Reader::new(Arc::clone(&stream)).map_err(at(&path))?;
    let greeted = match entry {
        Entry::Lane(lane) => hello(&peer, &mut reader, lane)?,
        Entry::Bare => look(&peer, &mut reader)?,
    };
    let home = match greeted {
        Ok(home) => home,
        Err(found) => return Ok(found),
    };
    reader.take_long_frames(FRAME_BYTES_MAX, Arc::default());
    if entry == Entry::Lane(Lane::Agents) {
        peer.write_at_most(AGENTS_FRAME_BYTES_MAX);
    }
    let ending = AtomicBool::new(false);
    let holder = Arc::new(Holder { peer, home, ending, state: Mutex::default() });
    let (takes, finishes, ends) = (Arc::clone(&holder), Arc::clone(&holder), Arc::clone(&holder));
    let reading = Reading {
        reader,
        take: Box::new(move |frame| takes.take(frame)),
        finish: Box::new(move || finishes.finish()),
        ended: Box::new(move || ended(ends.ending.load(Ordering::SeqCst))),
    };
    let incoming = Incoming::new(stream, reading);
    match by {
        Some(by) => {
            holder.peer.meanwhile(Box::new(incoming.meanwhile()));
            by(incoming);
        }
        None => incoming.on_a_thread().map_err(at(&path))?,
    }
    Ok(Found::Holder(holder))
}

/// Says hello; the home's id, where the holder lets this process in.
fn hello(peer: &Peer, reader: &mut Reader, lane: Lane) -> Result<Result<HomeId, Found>, Error> {
    peer.tell(&Hello::write(Versions::OURS, lane));
    let Ok(frame) = reader.next(Some(HELLO_TIME)) else { return Ok(Err(Found::NotNow)) };
    match Greeting::read(&frame) {
        Ok(Greeting::Welcome { version, home }) if Versions::OURS.include(version) => Ok(Ok(home)),
        Ok(Greeting::Welcome { .. }) | Err(_) => Err(not_understood()),
        Ok(Greeting::TurnedAway { code, versions }) => match Reason::from_code(code) {
            Some(Reason::Overloaded) => Ok(Err(Found::Full)),
            Some(Reason::Closing) => Ok(Err(Found::NotNow)),
            Some(Reason::UnknownVersion) => {
                Err(Error::Version { holder: versions, ours: Versions::OURS })
            }
            Some(reason) => Err(Error::Refused(Refused::new(reason))),
            None => Err(Error::Holder(format!("it lets nobody in, by reason {code}"))),
        },
    }
}

/// Looks how things stand; the home's id, where there is a holder that stays.
fn look(peer: &Peer, reader: &mut Reader) -> Result<Result<HomeId, Found>, Error> {
    peer.tell(&Command::Status.write(0));
    let Ok(frame) = reader.next(Some(HELLO_TIME)) else { return Ok(Err(Found::NotNow)) };
    match frozen::Response::read(&frame) {
        Ok((0, frozen::Response::Status(HolderStatus { phase: Phase::Closing, .. }))) => {
            Ok(Err(Found::NotNow))
        }
        Ok((0, frozen::Response::Status(status))) => Ok(Ok(status.home)),
        _ => Err(not_understood()),
    }
}

impl Holder {
    /// Which home it holds.
    pub(crate) const fn home(&self) -> HomeId {
        self.home
    }

    /// Asks for something, and reads what comes, however long that takes.
    pub(crate) fn ask<T: Field>(&self, ask: &impl Message) -> Step<T> {
        self.ask_within(Duration::MAX, ask)
    }

    /// Asks for a call. The server is told of a cancellation.
    pub(crate) fn call(self: &Arc<Self>, call: Call, cancel: &Cancel) -> Step<ToolResult> {
        let ask = AgentAsk::Call(Box::new(call));
        let asked = self.peer.ask(|id| ask.frame(id));
        if let Ok(pending) = &asked {
            let (holder, call) = (Arc::downgrade(self), pending.id);
            cancel.on_cancel(move || {
                if let Some(holder) = holder.upgrade() {
                    // Whoever cancels must not wait for a peer that does not read.
                    spawn("syscap-cancel", move || {
                        // Where it can't be told it has gone, or the call goes on.
                        drop(holder.peer.ask(|id| AgentAsk::Cancel(call).frame(id)));
                    });
                }
            });
        }
        self.answered(asked, Duration::MAX).map(|Answered(answer)| answer)
    }

    /// Asks for a call, and does not wait: `done` is told what came of it, once, by the thread that
    /// reads, or by this one where nothing was sent.
    pub(crate) fn call_then(
        self: &Arc<Self>,
        call: Call,
        done: impl FnOnce(Step<ToolResult>) + Send + 'static,
    ) {
        let (holder, ask) = (Arc::clone(self), AgentAsk::Call(Box::new(call)));
        let told = move |heard| done(holder.heard(heard).map(|Answered(answer)| answer));
        self.peer.ask_then(|id| ask.frame(id), Box::new(told));
    }

    /// Asks for calls together, as many at once as a connection may, and waits for all; none is
    /// given where it was turned away because the holder ends.
    pub(crate) fn call_all(&self, calls: Vec<Call>) -> Step<Vec<Option<ToolResult>>> {
        let length = |call: &Call| call.sent.envelope.len().saturating_add(CALL_FRAMING_BYTES);
        if calls.iter().any(|call| length(call) > self.peer.longest()) {
            // Before any is sent: the answers of the others would be lost.
            return Step::Done(Err(Refused::new(Reason::TooLarge).into()));
        }
        let mut answers = Vec::with_capacity(calls.len());
        let mut calls = calls.into_iter().peekable();
        while calls.peek().is_some() {
            let (mut bytes, mut asked) = (0_usize, Vec::new());
            while asked.len() < TOGETHER_MAX
                && let Some(call) = calls.next_if(|call| {
                    asked.is_empty() || bytes.saturating_add(length(call)) <= TOGETHER_BYTES_MAX
                })
            {
                bytes = bytes.saturating_add(length(&call));
                let ask = AgentAsk::Call(Box::new(call));
                asked.push((self.peer.ask(|id| ask.frame(id)), ask));
            }
            // Every one is waited for: what was begun is not left behind.
            answers.extend(asked.into_iter().map(|(asked, ask)| self.answer_of(asked, &ask)));
        }
        Step::Done(answers.into_iter().collect())
    }

    /// The answer to a call; where there was no room for it, it is asked for again.
    fn answer_of(
        &self,
        mut asked: Result<Pending, NotSent>,
        ask: &AgentAsk,
    ) -> Result<Option<ToolResult>, Error> {
        let since = Instant::now();
        loop {
            match self.answered(asked, Duration::MAX) {
                Step::Done(Err(Error::Refused(refused)))
                    if refused.reason() == Reason::Overloaded && since.elapsed() < TRY_TIME =>
                {
                    thread::sleep(TRY_PAUSE);
                    asked = self.peer.ask(|id| ask.frame(id));
                }
                Step::Done(answer) => return answer.map(|Answered(answer)| Some(answer)),
                Step::Again => return Ok(None),
            }
        }
    }

    /// The same. A holder that takes longer is given up.
    pub(crate) fn ask_within<T: Field>(&self, limit: Duration, ask: &impl Message) -> Step<T> {
        self.answered(self.peer.ask(|id| ask.frame(id)), limit)
    }

    /// Asks for what an operator asks for in any version. A holder that takes long is given up.
    pub(crate) fn operate<T: Field>(&self, command: &Command) -> Step<T> {
        self.answered(self.peer.ask(|id| command.write(id)), ANSWER_TIME)
    }

    fn answered<T: Field>(&self, asked: Result<Pending, NotSent>, limit: Duration) -> Step<T> {
        let pending = match asked {
            Ok(pending) => pending,
            Err(not_sent) => return self.heard(Err(Unanswered::NotSent(not_sent))),
        };
        match pending.wait_for(limit) {
            Some(answer) => self.heard(answer.map_err(|Lost| Unanswered::Lost)),
            None => {
                self.peer.break_off();
                Step::Done(Err(Error::HolderGone))
            }
        }
    }

    /// The step that an answer, or its absence, leads to.
    fn heard<T: Field>(&self, answer: Result<Reply, Unanswered>) -> Step<T> {
        match answer {
            Err(Unanswered::NotSent(NotSent::Over)) => Step::Again,
            Err(Unanswered::NotSent(NotSent::TooLong)) => {
                Step::Done(Err(Error::Refused(Refused::new(Reason::TooLarge))))
            }
            Err(Unanswered::Lost) => Step::Done(Err(Error::HolderGone)),
            Ok(Reply::Refused(refused)) if refused.reason() == Reason::Closing => {
                self.end_soon();
                Step::Again
            }
            Ok(reply) => Step::Done(reply.into_result().unwrap_or_else(|| {
                self.peer.break_off();
                Err(not_understood())
            })),
        }
    }

    /// Offers tools. The holder must answer within `limit`.
    pub(crate) fn provide(
        &self,
        tools: Vec<Offered>,
        provider: &Arc<dyn Provider>,
        limit: Duration,
    ) -> Step<Vec<Offer>> {
        let key = |Offered { manifest, .. }: &Offered| (manifest.tool.clone(), identity(manifest));
        let keys: Vec<(ToolId, DefinitionHash)> = tools.iter().map(key).collect();
        // From before it is asked on: a run may be asked for before the answer is there.
        let mut before = Vec::new();
        let mut state = self.state();
        for key in &keys {
            before.push((key, state.providers.insert(key.clone(), Arc::clone(provider))));
        }
        drop(state);
        let offered =
            self.ask_within(limit, &Ask::Provide(tools.into_iter().map(Provided::from).collect()));
        let offered = offered.map(|Offers { list }| list);
        let mut state = self.state();
        let mut gone = Vec::new();
        if let Step::Done(Ok(_)) = &offered {
            let other = |(tool, own): &(ToolId, DefinitionHash), _: &mut Arc<dyn Provider>| {
                keys.iter().any(|(offered, new)| offered == tool && new != own)
            };
            gone.extend(state.providers.extract_if(.., other).map(|(_, provider)| provider));
        } else {
            for (key, runs) in before.into_iter().rev() {
                let runs = runs.and_then(|runs| state.providers.insert(key.clone(), runs));
                gone.extend(runs.or_else(|| state.providers.remove(key)));
            }
        }
        drop(state);
        // A provider is dropped when nothing is locked: it may do anything then.
        drop(gone);
        offered
    }

    /// True if it can take no more requests.
    pub(crate) fn is_over(&self) -> bool {
        self.ending.load(Ordering::SeqCst) || self.peer.is_over()
    }

    /// Asks nothing more of it. Pending requests are still answered.
    pub(crate) fn end_soon(&self) {
        self.ending.store(true, Ordering::SeqCst);
        self.peer.stop_asking();
    }

    /// Leaves a holder that stays for this process. If it ends with that, this waits for the end.
    pub(crate) fn leave(&self) {
        let is_last = self.ask_within::<bool>(LEAVE_TIME, &Ask::Stay(false));
        if matches!(is_last, Step::Done(Ok(true))) {
            self.peer.wait_over(LEAVE_TIME);
        }
    }

    /// Ends the connection.
    pub(crate) fn close(&self) {
        self.peer.break_off();
    }

    /// Ends it: no more messages arrive.
    fn finish(&self) {
        self.peer.finish();
        // Nobody waits for what it asked for.
        let runs = std::mem::take(&mut self.state().runs);
        if !runs.is_empty() {
            spawn("syscap-cancel", move || runs.into_values().for_each(|cancel| cancel.cancel()));
        }
    }

    /// Takes one frame: hands an answer on, or does what the holder asks.
    fn take(self: &Arc<Self>, frame: &[u8]) -> Result<(), Broken> {
        if is_frozen(frame) {
            let (id, answer) = frozen::Response::read(frame)?;
            return self.peer.settle(id, answer.into_reply());
        }
        let frame = Frame::read(frame)?;
        let id = frame.id;
        if frame.carries != Carries::Order {
            return self.peer.settle(id, Reply::read(&frame)?);
        }
        match frame.take()? {
            Order::Run(run) => self.start(id, (*run).into()),
            Order::Cancel(run) => {
                let cancel = self.state().runs.get(&run).cloned();
                // Its hooks are the provider's code: they must not keep the reader.
                if let Some(cancel) = cancel {
                    spawn("syscap-cancel", move || cancel.cancel());
                }
                self.peer.answer(id, Reply::nothing());
            }
            Order::Closing => {
                self.end_soon();
                self.peer.answer(id, Reply::nothing());
            }
        }
        Ok(())
    }

    /// Has a call run, if there is room and somebody who runs it.
    fn start(self: &Arc<Self>, id: u64, call: HostCall) {
        let mut state = self.state();
        let room = state.runs.len() < REQUESTS_MAX && !state.runs.contains_key(&id);
        // What was let through under another definition is not this one's to run.
        let provider = state.providers.get(&(call.tool.clone(), call.definition));
        let provider = provider.filter(|_| room).map(Arc::clone);
        let Some(provider) = provider else {
            drop(state);
            let reason = if room { Reason::NoProvider } else { Reason::Overloaded };
            return self.peer.answer(id, Reply::refused(reason));
        };
        state.runs.insert(id, call.cancel.clone());
        drop(state);
        let holder = Arc::clone(self);
        relay::start(provider, call, move |ran| {
            holder.state().runs.remove(&id);
            holder.peer.answer(id, Reply::done(&Ran::from(ran)));
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step that can't break off half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if a thread was available.
fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    thread::Builder::new().name(name.to_owned()).spawn(run).is_ok()
}

fn not_understood() -> Error {
    Error::Holder("its answer is not of the protocol's form".to_owned())
}
