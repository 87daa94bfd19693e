//! Tools that an agent's client runs itself, and asks about before and after: what `syscap hook`
//! rests on.
//!
//! Before a use the call goes through the kernel as any other. If the kernel allows it, its run is
//! *in flight*: the intent is durable, and the broker, in the server, waits for the client's
//! report. If no report arrives the run is abandoned after its tool's limit, like any other: its
//! effect is unknown, and it is charged in full.

mod args;
mod late;
mod own;
mod shares;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use syscap_format::{
    AgentId, Amounts, Canonical, Dimension, EffectClass, Label, Manifest, Reason, Refused, Seq,
    Source, TokenId, ToolId, ToolResult, TxOutcome,
};

use syscap_kernel::Kernel;

use crate::Error;
use crate::driver::guard::caught;
use crate::runtime::session::call::{CallContext, Sent, Written};
use crate::server::desk::args::{envelope, is_sent, placed};
use crate::server::{Holding, LocalSession, check_said};
use crate::tools::host::closure::{done, unsure};
use crate::tools::host::uses::{Begun, Prompt, Reported, Settled, ToolUse};
use crate::tools::provide::{Cancel, HostCall, HostRan, Location, Offered, Provider, Standing};
use crate::tools::{ConnectionId, UseHere};

/// The connection that the desk offers tools as, and calls through.
const DESK: ConnectionId = ConnectionId::DESK;
/// Most uses that may be out at once: each costs two threads.
const USES_MAX: usize = 256;
/// Most conversations that are remembered, of all agents together; see [`shares`].
const SEATS_MAX: usize = 64;
/// Most tools on record that a holder put there because an agent's client used them: their names may
/// come from a stranger. Each agent has as many.
const NEW_TOOLS_MAX: usize = 64;
/// Longest name that a client may give a conversation or a use, in bytes.
const NAME_BYTES_MAX: usize = 256;
/// Most bytes of what an agent's users say within an hour: it costs nothing, and a program of the
/// agent's can say it in their place, also where the agent is stopped.
const SAID_BYTES_MAX: usize = 16 << 20;
const SAID_TIME: Duration = Duration::from_secs(60 * 60);
/// Most bytes that an agent's uses may still have to pay for: no use is begun beyond. What is refused
/// pays nothing before the next one that is not.
const OWED_BYTES_MAX: u64 = 1 << 30;
/// No fewer bytes than a record of it takes beside the words.
const SAID_RECORD_BYTES: usize = 1 << 10;
/// How long the kernel may take to decide, or to settle.
const KERNEL_TIME: Duration = Duration::from_secs(15);

/// Uses that are out.
#[derive(Default)]
pub(crate) struct Desk(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// The tools that were put on record here, by the agent that used them first. Never locked within
    /// `state`.
    new_tools: Mutex<BTreeMap<AgentId, BTreeSet<ToolId>>>,
}

#[derive(Default)]
struct State {
    /// By their tags, which are random: a call that came otherwise must not meet one by chance.
    uses: BTreeMap<u64, Use>,
    seats: BTreeMap<SeatKey, (Arc<LocalSession>, u64)>,
    /// The recent messages of the agents' users: their start, and their bytes.
    said: BTreeMap<AgentId, (Instant, usize)>,
    last: u64,
    closed: bool,
}

type SeatKey = (AgentId, TokenId, String);

struct Use {
    /// The place in the order of uses.
    number: u64,
    token: TokenId,
    /// The conversation's session, or that of the program that makes it.
    session: Seq,
    /// True if only that session may settle it.
    is_own: bool,
    used: ToolUse,
    /// The call as sent to the kernel: the arguments, and their location.
    args: Canonical,
    effect: EffectClass,
    stage: Stage,
    /// True if no caller waits for the run any more.
    cancelled: bool,
    /// True if a caller waits for the answer.
    awaited: bool,
}

enum Stage {
    /// The kernel has the call.
    Sent,
    /// The client makes the use; its intent stands there.
    Out(Seq),
    /// It is back; the run has not taken that yet.
    Reported(HostRan),
    /// The run has ended.
    Ended,
    /// The kernel has answered.
    Answered(Result<Box<ToolResult>, Error>),
}

impl Desk {
    /// Asks the kernel for leave. The tool is offered as the desk's.
    pub(crate) fn begin(
        &self,
        runtime: &Holding,
        token: TokenId,
        used: ToolUse,
        manifest: Manifest,
        unasked: bool,
    ) -> Result<Begun, Error> {
        if !is_name(&used.conversation) || !used.id.as_deref().is_none_or(is_name) {
            return Err(refused(Reason::BadField, "conversation"));
        }
        if manifest.tool != used.tool {
            return Err(refused(Reason::BadField, "tool_id"));
        }
        let leave = (manifest.effect, placed(&used, &manifest)?);
        self.offer(runtime, token, &used.agent, manifest)?;
        let session = self.seat(runtime, token, &used.agent, &used.conversation)?;
        self.send(runtime, session, used, leave, None, unasked)
    }

    /// Has the kernel decide a use, whose class and arguments these are, and waits until it is out.
    fn send(
        &self,
        runtime: &Holding,
        session: Arc<LocalSession>,
        used: ToolUse,
        (effect, args): (EffectClass, Canonical),
        by: Option<Arc<dyn Provider>>,
        unasked: bool,
    ) -> Result<Begun, Error> {
        if runtime.providers.owed(&used.agent) > OWED_BYTES_MAX {
            return Err(refused(Reason::OverBudget, Dimension::DiskWriteBytes.name()));
        }
        runtime.providers.owes(&used.agent, args.as_bytes().len());
        let (stage, cancelled, awaited) = (Stage::Sent, false, true);
        let (number, at) = (0, session.number());
        let one = Use {
            number,
            token: session.token(),
            session: at,
            is_own: by.is_some(),
            used: used.clone(),
            args: args.clone(),
            effect,
            stage,
            cancelled,
            awaited,
        };
        let tag = self.enter(runtime, one)?;
        let here = UseHere { location: used.location.clone().map(Location::new), by };
        let at = runtime.providers.at(tag, here);
        let shared = Arc::clone(&self.0);
        let started = thread::Builder::new().name("syscap-use".to_owned()).spawn(move || {
            let (form, source) = (Written::Cbor, Source::Agent);
            let context = CallContext { unasked, ..CallContext::tag(tag) };
            let envelope = envelope(&used, &args);
            let sent = Sent { envelope, form, source, context };
            let answer = caught(|| session.send(sent, &Cancel::new()));
            drop(at);
            shared.answered(tag, answer.unwrap_or(Err(Error::BrokeOff)));
        });
        if started.is_err() {
            self.0.lock().uses.remove(&tag);
            return Err(refused(Reason::Overloaded, "tool_id"));
        }
        let shared = &*self.0;
        shared.come(shared.lock(), tag, Until::Out)
    }

    /// Puts on record what a user said in a conversation, which begins with it where it has not.
    pub(crate) fn heard(
        &self,
        runtime: &Holding,
        token: TokenId,
        prompt: &Prompt,
    ) -> Result<Seq, Error> {
        let Prompt { agent, conversation, text } = prompt;
        if !is_name(conversation) {
            return Err(refused(Reason::BadField, "conversation"));
        }
        // Before a session is opened for it.
        check_said(text)?;
        if !self.0.lock().may_say(agent, text.len()) {
            return Err(refused(Reason::Overloaded, "text"));
        }
        let session = self.seat(runtime, token, agent, conversation)?;
        // An agent that there is: no more are kept than that. Others may have said something since.
        if !self.0.lock().says(agent, text.len()) {
            return Err(refused(Reason::Overloaded, "text"));
        }
        // The user's own words, which add nothing to what else the conversation has been given.
        session.heard(text, Label::PUBLIC)
    }

    /// Says what a use came to that was begun with that token; gives the kernel's answer to that. Of
    /// one that was closed before the report is recorded as late, whatever its token.
    pub(crate) fn settle(
        &self,
        runtime: &Holding,
        token: TokenId,
        used: &ToolUse,
        reported: Reported,
    ) -> Result<Settled, Error> {
        let shared = &*self.0;
        let mut state = shared.lock();
        let is_out =
            |one: &Use| matches!(one.stage, Stage::Out(_)) && one.token == token && one.is(used);
        let of_it = state.uses.iter_mut().filter(|(_, one)| is_out(one));
        let found = of_it.min_by_key(|(_, one)| one.number);
        let Some((tag, one)) = found.map(|(tag, one)| (*tag, one)) else {
            drop(state);
            return runtime.report_late(used, reported).map(Settled::Late);
        };
        runtime.providers.owes(&used.agent, reported.len());
        let ran = came_to(one.effect, one.used.args == used.args, reported);
        shared.settles(state, tag, ran)
    }

    /// Gives up all that is out, and takes nothing more.
    pub(crate) fn close(&self) {
        let mut state = self.0.lock();
        state.closed = true;
        state.uses.values_mut().for_each(|one| one.cancelled = true);
        self.0.changed.notify_all();
        let until = Instant::now() + KERNEL_TIME;
        while !state.uses.is_empty() {
            let Some(left) = until.checked_duration_since(Instant::now()) else { break };
            state = self.0.wait(state, left);
        }
        state.seats.clear();
    }

    fn offer(
        &self,
        runtime: &Holding,
        token: TokenId,
        agent: &AgentId,
        manifest: Manifest,
    ) -> Result<(), Error> {
        let on_record = |tool: &ToolId| {
            runtime.look(|kernel| kernel.manifests().any(|known| known.tool == *tool))
        };
        let known = |tool: &ToolId| on_record(tool) || runtime.providers.awaits(tool);
        let tool = manifest.tool.clone();
        // Those that are new come one at a time, and count once they are on record.
        let mut new_tools = match on_record(&tool) {
            true => None,
            false => Some(self.0.new_tools.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        if let Some(new_tools) = &mut new_tools {
            // Only agents with a token have a share: no more are kept than there are.
            let is_its = |kernel: &Kernel| {
                kernel.token(&token).is_some_and(|token| token.body.agent == *agent)
            };
            if !runtime.look(is_its) {
                return Err(refused(Reason::NotBound, "agent_id"));
            }
            new_tools.values_mut().for_each(|own| own.retain(known));
            new_tools.retain(|_, own| !own.is_empty());
            let own = new_tools.get(agent);
            if own.is_some_and(|own| own.len() >= NEW_TOOLS_MAX && !own.contains(&tool)) {
                return Err(Error::TooManyTools);
            }
        }
        let provider: Arc<dyn Provider> = Arc::new(Uses(Arc::clone(&self.0)));
        let offers = runtime.provide(DESK, vec![Offered::by(&*provider, manifest)], &provider)?;
        if let Some(taken) = offers.iter().find(|offer| offer.standing == Standing::Taken) {
            let got = taken.tool().as_str().to_owned();
            return Err(Error::BadName { what: "a delegated tool", got });
        }
        if let Some(mut new_tools) = new_tools {
            new_tools.entry(agent.clone()).or_default().insert(tool.clone());
        }
        match offers.iter().any(|offer| offer.standing == Standing::New) {
            true => Err(Error::Awaits(tool)),
            false => Ok(()),
        }
    }

    /// The session of a conversation; a new one where it has none.
    fn seat(
        &self,
        runtime: &Holding,
        token: TokenId,
        agent: &AgentId,
        conversation: &str,
    ) -> Result<Arc<LocalSession>, Error> {
        let key = (agent.clone(), token, conversation.to_owned());
        let mut state = self.0.lock();
        state.last = state.last.saturating_add(1);
        let now = state.last;
        if let Some((session, last)) = state.seats.get_mut(&key) {
            *last = now;
            return Ok(Arc::clone(session));
        }
        let given_up = match state.seats.len() >= SEATS_MAX {
            true => Some(state.give_seat_up(agent)?),
            false => None,
        };
        drop(state);
        if let Some(session) = given_up {
            self.0.changed.notify_all();
            runtime.unbind(session.number());
            session.end()?;
        }
        let session = Arc::new(runtime.session(agent.as_str(), token)?);
        runtime.bind(session.number(), DESK);
        let mut state = self.0.lock();
        let (kept, _) = state.seats.entry(key).or_insert_with(|| (Arc::clone(&session), now));
        let kept = Arc::clone(kept);
        drop(state);
        if !Arc::ptr_eq(&kept, &session) {
            // Another use of the same conversation was quicker.
            runtime.unbind(session.number());
            session.end()?;
        }
        Ok(kept)
    }

    fn enter(&self, runtime: &Holding, mut one: Use) -> Result<u64, Error> {
        let tag = u64::from_be_bytes(runtime.core.salts.bytes()?);
        let mut state = self.0.room_for(&one.used.agent)?;
        if state.closed {
            return Err(refused(Reason::Closing, "tool_id"));
        }
        // The same tag twice is next to impossible, and would be one use for the other.
        if state.uses.len() >= USES_MAX || state.uses.contains_key(&tag) {
            return Err(refused(Reason::Overloaded, "tool_id"));
        }
        state.last = state.last.saturating_add(1);
        one.number = state.last;
        state.uses.insert(tag, one);
        Ok(tag)
    }
}

impl State {
    /// True if that many more bytes may be recorded for an agent.
    fn may_say(&mut self, agent: &AgentId, bytes: usize) -> bool {
        self.said.retain(|_, (since, _)| since.elapsed() < SAID_TIME);
        let said = self.said.get(agent).map_or(0, |(_, said)| *said);
        said.saturating_add(bytes) <= SAID_BYTES_MAX
    }

    /// Counts that much more, where it may be said.
    fn says(&mut self, agent: &AgentId, bytes: usize) -> bool {
        let may = self.may_say(agent, bytes);
        if may {
            let (_, said) = self.said.entry(agent.clone()).or_insert_with(|| (Instant::now(), 0));
            *said = said.saturating_add(bytes).saturating_add(SAID_RECORD_BYTES);
        }
        may
    }
}

impl Use {
    /// True if it was made in that conversation.
    fn is_in(&self, (agent, token, conversation): &SeatKey) -> bool {
        (&self.used.agent, self.token, &self.used.conversation) == (agent, *token, conversation)
    }

    /// True if the kernel allowed the use as this call.
    fn is_called(&self, call: &HostCall) -> bool {
        let Self { session, used, args, .. } = self;
        *session == call.session
            && used.agent == call.agent
            && used.tool == call.tool
            && is_sent(args, &call.args)
    }

    /// True if it is the same use of a conversation's.
    fn is(&self, used: &ToolUse) -> bool {
        let mine = &self.used;
        let same = !self.is_own
            && mine.agent == used.agent
            && mine.conversation == used.conversation
            && mine.tool == used.tool;
        match (&mine.id, &used.id) {
            (Some(mine), Some(theirs)) => same && mine == theirs,
            (None, None) => same && mine.args == used.args,
            _ => false,
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is one step that can't break off half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, left: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
    }

    /// A use is back: what the kernel makes of it.
    fn settles(
        &self,
        mut state: MutexGuard<'_, State>,
        tag: u64,
        ran: HostRan,
    ) -> Result<Settled, Error> {
        let one = state.uses.get_mut(&tag).ok_or(Error::BrokeOff)?;
        (one.stage, one.awaited) = (Stage::Reported(ran), true);
        self.changed.notify_all();
        match self.come(state, tag, Until::Answered)? {
            Begun::Answered(answer) => Ok(Settled::Answered(answer)),
            Begun::Out(_) => Err(Error::BrokeOff),
        }
    }

    /// Waits until the kernel has answered, or that what is waited for has come to pass.
    fn come(
        &self,
        mut state: MutexGuard<'_, State>,
        tag: u64,
        until: Until,
    ) -> Result<Begun, Error> {
        let deadline = Instant::now() + KERNEL_TIME;
        loop {
            let one = state.uses.get_mut(&tag).ok_or(Error::BrokeOff)?;
            match (&one.stage, until) {
                (Stage::Out(intent), Until::Out) => {
                    one.awaited = false;
                    return Ok(Begun::Out(*intent));
                }
                (Stage::Answered(_), _) => break,
                _ => {}
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                // A run that begins after this must not: the client has been told no.
                (one.awaited, one.cancelled) = (false, true);
                self.changed.notify_all();
                return Err(refused(Reason::Overloaded, "tool_id"));
            };
            state = self.wait(state, left);
        }
        match state.uses.remove(&tag).map(|one| one.stage) {
            Some(Stage::Answered(answer)) => answer.map(Begun::Answered),
            _ => Err(Error::BrokeOff),
        }
    }

    fn answered(&self, tag: u64, answer: Result<ToolResult, Error>) {
        let mut state = self.lock();
        match state.uses.get_mut(&tag) {
            Some(one) if one.awaited => one.stage = Stage::Answered(answer.map(Box::new)),
            _ => drop(state.uses.remove(&tag)),
        }
        self.changed.notify_all();
    }

    /// Abandons a run.
    fn give_up(&self, tag: u64) {
        if let Some(one) = self.lock().uses.get_mut(&tag) {
            one.cancelled = true;
        }
        self.changed.notify_all();
    }

    /// True if the call belongs to a use, which is then in flight. Else nobody asked for it here,
    /// or whoever did was told no.
    fn take(&self, call: &HostCall) -> bool {
        let mut state = self.lock();
        let sent = |one: &&mut Use| matches!(one.stage, Stage::Sent) && !one.cancelled;
        let one = state.uses.get_mut(&call.tag).filter(sent).filter(|one| one.is_called(call));
        let Some(one) = one else { return false };
        one.stage = Stage::Out(call.intent);
        self.changed.notify_all();
        true
    }

    /// Waits until the client has said what a use came to that was taken.
    fn run(&self, call: &HostCall) -> HostRan {
        let mut state = self.lock();
        let hold = call.hold;
        while let Some(one) = state.uses.get_mut(&call.tag) {
            if let Stage::Reported(..) = one.stage
                && let Stage::Reported(ran) = std::mem::replace(&mut one.stage, Stage::Ended)
            {
                return ran;
            }
            if one.cancelled {
                let (effect, cancelled) = (one.effect, Refused::new(Reason::Cancelled));
                one.stage = Stage::Ended;
                return HostRan::new(Err(cancelled), unsure(effect), hold);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let gone = Refused::new(Reason::ProviderGone);
        HostRan::new(Err(gone), TxOutcome::Unknown, hold)
    }
}

/// The event that is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    Out,
    Answered,
}

/// Runs what is used elsewhere.
struct Uses(Arc<Shared>);

impl Provider for Uses {
    fn run(&self, call: HostCall) -> HostRan {
        if !self.0.take(&call) {
            return ended(Err(Refused::new(Reason::Cancelled)), TxOutcome::NoOp);
        }
        let (shared, tag) = (Arc::clone(&self.0), call.tag);
        call.cancel.on_cancel(move || shared.give_up(tag));
        self.0.run(&call)
    }
}

/// What a client's report makes of a use of that class, made with the arguments that were let through
/// or with others.
fn came_to(effect: EffectClass, same: bool, reported: Reported) -> HostRan {
    if !same {
        let got = "it was made with other arguments than those that were let through";
        return ended(Err(Refused::new(Reason::Failed).got(got)), TxOutcome::Unknown);
    }
    match reported {
        Reported::Result(result) => ended(Ok(result), done(effect)),
        Reported::Failed(words) => {
            HostRan::failed(Canonical::text(&words), unsure(effect), Amounts::ZERO)
        }
        Reported::NotMade(words) => {
            let got = format!("not made: {words}");
            ended(Err(Refused::new(Reason::Cancelled).got(&got)), TxOutcome::NoOp)
        }
    }
}

fn ended(result: Result<Canonical, Refused>, tx: TxOutcome) -> HostRan {
    HostRan::new(result, tx, Amounts::ZERO)
}

/// True if a client may name a conversation, or a use, so.
fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
}

fn refused(reason: Reason, field: &str) -> Error {
    Error::Refused(Refused::new(reason).field(field))
}

#[cfg(test)]
mod tests;
