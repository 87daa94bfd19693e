//! The attached side: asks of the holder, and runs what it offered when the holder asks.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use syscap_format::{DefinitionHash, HomeId, Reason, Refused, Seq, ToolId, ToolResult};

use crate::Error;
use crate::error::at;
use crate::runtime::backend::{Backend, Place, Step, Told};
use crate::runtime::held::Held;
use crate::runtime::session::call::Sent;
use crate::server::request::Request;
use crate::tools::identity;
use crate::tools::provide::{Cancel, HostCall, Offer, Offered, Provider};
use crate::transport::frame::{Carries, Frame, Message};
use crate::transport::frozen::{self, Command, HolderStatus, Phase};
use crate::transport::hello::{Greeting, Hello, Lane, is_frozen};
use crate::transport::incoming::{Incoming, ReadBy, Reading};
use crate::transport::limits::{
    AGENTS_FRAME_BYTES_MAX, ANSWER_TIME, CALL_FRAMING_BYTES, FRAME_BYTES_MAX, HELLO_TIME,
    LEAVE_TIME, REQUESTS_MAX, SHORT_BYTES_MAX, TOGETHER_BYTES_MAX, TOGETHER_MAX, TRY_PAUSE,
    TRY_TIME,
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

/// The process that holds the home, as an attached one sees it.
pub(crate) struct Holder {
    me: Weak<Self>,
    peer: Peer,
    /// Which home it holds, as it said when it let this process in.
    home: HomeId,
    lane: Option<Lane>,
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
    let holder = Arc::new_cyclic(|me| {
        let (me, state) = (Weak::clone(me), Mutex::default());
        let lane = match entry {
            Entry::Lane(lane) => Some(lane),
            Entry::Bare => None,
        };
        Holder { me, peer, home, lane, ending, state }
    });
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

    /// The call that a frame asks for.
    fn asks(at: Place<'_>, sent: &Sent) -> AgentAsk {
        AgentAsk::Call(Box::new(Call { session: at.session, sent: sent.clone() }))
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
                answer => match self.result(answer) {
                    Step::Done(answer) => return answer.map(Some),
                    Step::Again => return Ok(None),
                },
            }
        }
    }

    /// The answer to a call. One that the kernel turned away as it was ending has not run.
    fn result(&self, answer: Step<Vec<u8>>) -> Step<ToolResult> {
        match self.here().read(answer).map(|Answered(answer)| answer) {
            Step::Done(Ok(answer)) if answer.reason() == Some(Reason::Closing) => Step::Again,
            answer => answer,
        }
    }

    fn here(&self) -> &dyn Backend {
        self
    }

    fn answered(&self, asked: Result<Pending, NotSent>, limit: Duration) -> Step<Vec<u8>> {
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
    fn heard(&self, answer: Result<Reply, Unanswered>) -> Step<Vec<u8>> {
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
            Ok(reply) => Step::Done(reply.into_bytes()),
        }
    }

    /// Asks nothing more of it. Pending requests are still answered.
    pub(crate) fn end_soon(&self) {
        self.ending.store(true, Ordering::SeqCst);
        self.peer.stop_asking();
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
        let provider = match self.lane {
            // The server has put its class into what was offered by a ticket, and knows whose that is:
            // it is run by its name, unless there are two of it.
            Some(Lane::Agents) => {
                let mut named = state.providers.iter().filter(|((it, _), _)| *it == call.tool);
                named.next().filter(|_| named.next().is_none()).map(|(_, provider)| provider)
            }
            _ => state.providers.get(&(call.tool.clone(), call.definition)),
        };
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

impl Backend for Holder {
    fn bytes(&self, request: Request, limit: Duration) -> Step<Vec<u8>> {
        self.answered(self.peer.ask(|id| request.frame(id)), limit)
    }

    /// One that takes long is given up.
    fn operate(&self, command: Command) -> Step<Vec<u8>> {
        self.answered(self.peer.ask(|id| command.write(id)), ANSWER_TIME)
    }

    fn misread(&self) -> Error {
        self.peer.break_off();
        not_understood()
    }

    /// The server is told of a cancellation.
    fn call(&self, at: Place<'_>, sent: &mut Option<Sent>, cancel: &Cancel) -> Step<ToolResult> {
        let Some(sent) = sent else { return Step::Done(Err(Error::HolderGone)) };
        let ask = Self::asks(at, sent);
        let asked = self.peer.ask(|id| ask.frame(id));
        if let Ok(pending) = &asked {
            let (holder, call) = (Weak::clone(&self.me), pending.id);
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
        self.result(self.answered(asked, Duration::MAX))
    }

    /// The thread that reads tells the answer, or this one where nothing was sent.
    fn submit(&self, at: Place<'_>, sent: Sent, told: Told) {
        let Some(holder) = self.me.upgrade() else { return told(Step::Again) };
        // A long one may have to wait until it is read.
        if sent.envelope.len() > SHORT_BYTES_MAX {
            return told(Step::Again);
        }
        let ask = Self::asks(at, &sent);
        let told = move |heard| told(holder.result(holder.heard(heard)));
        self.peer.ask_then(|id| ask.frame(id), Box::new(told));
    }

    /// As many at once as a connection may.
    fn call_all(&self, at: Place<'_>, all: &[Sent]) -> Step<Vec<Option<ToolResult>>> {
        let length = |sent: &Sent| sent.envelope.len().saturating_add(CALL_FRAMING_BYTES);
        if all.iter().any(|sent| length(sent) > self.peer.longest()) {
            // Before any is sent: the answers of the others would be lost.
            return Step::Done(Err(Refused::new(Reason::TooLarge).into()));
        }
        let mut answers = Vec::with_capacity(all.len());
        let mut calls = all.iter().peekable();
        while calls.peek().is_some() {
            let (mut bytes, mut asked) = (0_usize, Vec::new());
            while asked.len() < TOGETHER_MAX
                && let Some(sent) = calls.next_if(|sent| {
                    asked.is_empty() || bytes.saturating_add(length(sent)) <= TOGETHER_BYTES_MAX
                })
            {
                bytes = bytes.saturating_add(length(sent));
                let ask = Self::asks(at, sent);
                asked.push((self.peer.ask(|id| ask.frame(id)), ask));
            }
            // Every one is waited for: what was begun is not left behind.
            answers.extend(asked.into_iter().map(|(asked, ask)| self.answer_of(asked, &ask)));
        }
        Step::Done(answers.into_iter().collect())
    }

    fn provide(
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
        let tools: Vec<Provided> = tools.into_iter().map(Provided::from).collect();
        let tools = match self.lane {
            Some(Lane::Agents) => Request::Offer(tools),
            _ => Request::from(Ask::Provide(tools)),
        };
        let offered = self.here().ask(tools, limit).map(|Offers { list }| list);
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

    fn held(&self) -> Option<&Held> {
        None
    }

    fn is_over(&self) -> bool {
        self.ending.load(Ordering::SeqCst) || self.peer.is_over()
    }

    fn close(&self, stayed: bool) -> Result<Option<Seq>, Error> {
        if stayed {
            let is_last = self.here().ask::<bool>(Ask::Stay(false), LEAVE_TIME);
            if matches!(is_last, Step::Done(Ok(true))) {
                self.peer.wait_over(LEAVE_TIME);
            }
        }
        self.peer.break_off();
        Ok(None)
    }
}

/// True if a thread was available.
fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    thread::Builder::new().name(name.to_owned()).spawn(run).is_ok()
}

fn not_understood() -> Error {
    Error::Holder("its answer is not of the protocol's form".to_owned())
}
