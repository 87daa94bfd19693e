//! A session, in this process or at the holder.

pub(crate) mod call;
mod heard;
mod own_use;
mod recent;
mod submit;
mod wait;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use syscap_format::field::Field;
use syscap_format::{
    AgentId, Amounts, Canonical, Reason, Refused, Seq, SnapshotId, Source, TokenId, ToolResult,
};

use crate::runtime::backend::{self, Backend, Step};
use crate::runtime::failover::Open;
pub use crate::runtime::session::call::Call;
pub(crate) use crate::runtime::session::call::Handle;
use crate::runtime::session::call::Written;
pub use crate::runtime::session::wait::{Stands, Waited};
use crate::server::lend::SessionTicket;
use crate::server::request::Request;
use crate::transport::{Aborted, Ask, Charge, Opening, Proposed, Taken};
use crate::{Args, Changed, Error};

/// A seat at the kernel, bound to one agent and one token, whoever holds the home. Calls through
/// it may name no others.
///
/// It is the capability in process: who has the `Session` can call, and nobody who has only
/// the token's id. It can be used from several threads at once. One that is dropped stays open
/// until the home is closed, or this process ends. With each new holder of the home it is opened
/// again.
pub struct Session {
    home: Arc<Open>,
    agent: AgentId,
    token: TokenId,
    /// The origin of the session's calls, as the host states it.
    source: Source,
    place: Arc<Mutex<Place>>,
}

/// The location of the session.
struct Place {
    /// With which holder, and its number there; `None` before it was opened.
    at: Option<(Weak<dyn Backend>, Seq)>,
    /// The record that opened it.
    number: Seq,
    closed: bool,
}

impl Session {
    pub(crate) fn open(home: &Arc<Open>, agent: &str, token: TokenId) -> Result<Self, Error> {
        let got = agent.to_owned();
        let agent = AgentId::new(agent).ok_or(Error::BadName { what: "the agent", got })?;
        let place = Place { at: None, number: Seq::GENESIS, closed: false };
        let session = Self::at(home, agent, token, place);
        session.with(|_, _| Step::Done(Ok(())))?;
        Ok(session)
    }

    /// Takes a session that was lent, with the holder that there is.
    pub(crate) fn take(home: &Arc<Open>, ticket: &SessionTicket) -> Result<Self, Error> {
        let (at, taken) = home.each(|up| {
            let taken = up.ask::<Taken>(Request::Take(ticket.clone()), Duration::MAX);
            taken.map(|taken| (Arc::downgrade(up), taken))
        })?;
        let number = taken.session;
        let place = Place { at: Some((at, number)), number, closed: false };
        Ok(Self::at(home, taken.agent, taken.token, place))
    }

    fn at(home: &Arc<Open>, agent: AgentId, token: TokenId, place: Place) -> Self {
        let (home, place) = (Arc::clone(home), Arc::new(Mutex::new(place)));
        Self { home, agent, token, source: Source::Agent, place }
    }

    /// The same seat, for what somebody else than the agent brings about: a person who pressed a
    /// button, say. Calls and proposals through it are on record as by that source. It is the
    /// host's word, so agents must not reach it; what an envelope says of its source is never
    /// more than a claim. Closing it closes the seat. On the agents' lane such calls are refused
    /// as [`WrongLane`](Reason::WrongLane).
    ///
    /// ```
    /// use syscap::{format::Source, prelude::*};
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let rt = Runtime::create(folder.path().join("home"))?;
    /// let agent = rt.session("a", rt.issue(Grant::to("a").tools(["echo"]))?)?;
    /// let pressed = agent.by(Source::User).call("echo", args! { "value": "hello" })?;
    /// assert_eq!(pressed.provenance().map(|from| from.source), Some(Source::User));
    /// # rt.close()
    /// # }
    /// ```
    pub fn by(&self, source: Source) -> Self {
        let (home, place) = (Arc::clone(&self.home), Arc::clone(&self.place));
        Self { home, agent: self.agent.clone(), token: self.token, source, place }
    }

    /// Calls a tool. The answer is on record, and durable, when this returns.
    ///
    /// ```
    /// use syscap::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let rt = Runtime::create(folder.path().join("home"))?;
    /// let agent = rt.session("a", rt.issue(Grant::to("a").tools(["echo"]))?)?;
    /// let answer = agent.call("echo", args! { "value": "hello" })?;
    /// assert_eq!(answer.value()?.get("value").and_then(|value| value.as_text()), Some("hello"));
    /// // What a call does not get is an answer too, on the record, with its reason.
    /// let refused = agent.call("fs.read", args! { "path": "a.txt" })?;
    /// assert_eq!(refused.reason(), Some(Reason::NotGranted));
    /// # rt.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Halted`] or [`Error::Home`] where the kernel has stopped; [`Error::HolderGone`]
    /// where the process that held the home went before it had answered: what the call came to
    /// stands in the log after the recovery, and it is not sent again; else why there is no
    /// holder. A refusal is an answer, raised by [`ToolResult::text`] or [`ToolResult::value`].
    pub fn call(&self, tool: &str, args: Args) -> Result<ToolResult, Error> {
        self.request(tool).args(args).wait()
    }

    /// Begins a call of a tool, with more than arguments.
    ///
    /// ```
    /// use syscap::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let rt = Runtime::create(folder.path().join("home"))?;
    /// let agent = rt.session("a", rt.issue(Grant::to("a").tools(["echo"]))?)?;
    /// // A repeat under the same key gets the first answer.
    /// let once = || agent.request("echo").args(args! { "value": 1 }).key("turn-1").wait();
    /// assert_eq!(once()?.delivered(), once()?.delivered());
    /// # rt.close()
    /// # }
    /// ```
    pub fn request(&self, tool: &str) -> Call<'_> {
        Call::of(Handle::Lent(self), tool)
    }

    /// Begins the call that an envelope is: canonical CBOR or JSON, whole or with only `tool_id` and
    /// `args`. The author of a JSON text controls all of its fields: a model's arguments belong in
    /// [`Call::json`]. Bytes that are no envelope are refused, on the record.
    pub fn envelope(&self, bytes: &[u8], form: Written) -> Call<'_> {
        Call::raw(Handle::Lent(self), bytes, form)
    }

    /// Posts model tokens and credits that were used, after the fact.
    ///
    /// # Errors
    /// [`Error::Refused`] where another dimension is posted; else as [`Session::call`].
    pub fn charge(&self, amounts: Amounts) -> Result<Seq, Error> {
        self.ask(|session| Ask::Charge(Charge { session, amounts }))
    }

    /// Cancels a call of this session that is out, by its intent: what has not begun does not run,
    /// and costs nothing; what runs is told, and its outcome says that it was cancelled. It is on
    /// record. An operator cancels any call, by a signed
    /// [`CancelBody`](syscap_format::CancelBody). Not on the agents' lane.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`NotOpen`](Reason::NotOpen) where it is not a call of this session
    /// that is out, or was cancelled before; else as [`Session::call`].
    pub fn cancel(&self, intent: Seq) -> Result<Seq, Error> {
        self.ask(|session| Ask::Abort(Aborted { session, intent }))
    }

    /// Proposes `goal.*` entries of the agent's state, whole or not at all: a value sets a key,
    /// null takes it away. It pays one of `calls`; from then on calls are decided on the new
    /// head.
    ///
    /// # Errors
    /// [`Error::Refused`], with the reason on record; else as [`Session::call`].
    pub fn propose(&self, changes: Args) -> Result<Changed, Error> {
        self.change(self.source, Vec::new(), changes.finish(), None)
    }

    /// The same, made from a head that must still be the head.
    ///
    /// # Errors
    /// As [`Session::propose`].
    pub fn propose_from(&self, base: SnapshotId, changes: Args) -> Result<Changed, Error> {
        self.change(self.source, Vec::new(), changes.finish(), Some(base))
    }

    pub(crate) fn change(
        &self,
        writer: Source,
        inputs: Vec<Seq>,
        changes: Canonical,
        base: Option<SnapshotId>,
    ) -> Result<Changed, Error> {
        self.ask(|session| {
            let (inputs, changes) = (inputs.clone(), changes.clone());
            Ask::Propose(Box::new(Proposed { session, writer, inputs, base, changes }))
        })
    }

    /// Gives the session away: whoever takes the ticket can call through it, on the agents' lane
    /// too, and nobody else any more. A session that is never taken ends with this process.
    ///
    /// # Errors
    /// [`Error::Unserved`] where this process holds the home and serves it to nobody;
    /// [`Error::Refused`] where so many are lent that there is no room; [`Error::HolderGone`].
    pub fn lend(self) -> Result<SessionTicket, Error> {
        let ticket = self.ask(Ask::Lend)?;
        let mut place = self.place();
        (place.at, place.closed) = (None, true);
        drop(place);
        Ok(ticket)
    }

    /// The agent.
    pub const fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// The token.
    pub const fn token(&self) -> TokenId {
        self.token
    }

    /// The origin of the session's calls, as the host states it: the agent, except for
    /// [`Session::by`].
    pub const fn source(&self) -> Source {
        self.source
    }

    /// The record that opened the session, with the holder that it was last used at.
    pub fn number(&self) -> Seq {
        self.place().number
    }

    /// Closes the session, for all who share it. One that is dropped stays open until the home is
    /// closed, or this process ends.
    ///
    /// # Errors
    /// [`Error::Halted`] or [`Error::Home`] where the kernel has stopped. With a server that has gone
    /// it has ended.
    pub fn close(self) -> Result<(), Error> {
        self.end()
    }

    /// The same, where it is shared.
    pub(crate) fn end(&self) -> Result<(), Error> {
        let mut place = self.place();
        if std::mem::replace(&mut place.closed, true) {
            return Ok(());
        }
        let Some((with, session)) = place.at.clone() else { return Ok(()) };
        drop(place);
        // With another holder it has ended already, and one that ends ends it too.
        let Some(up) = with.upgrade() else { return Ok(()) };
        match up.ask::<Seq>(Request::Close(session), Duration::MAX) {
            Step::Done(Err(Error::HolderGone)) | Step::Again => Ok(()),
            Step::Done(closed) => closed.map(drop),
        }
    }

    /// Asks for something in the session, of whoever holds the home.
    fn ask<T: Field>(&self, ask: impl Fn(Seq) -> Ask) -> Result<T, Error> {
        self.with(|up, at| up.ask(ask(at.session), Duration::MAX))
    }

    /// The same of what is asked on either channel.
    pub(crate) fn told<T: Field>(&self, ask: impl Fn(Seq) -> Request) -> Result<T, Error> {
        self.with(|up, at| up.ask(ask(at.session), Duration::MAX))
    }

    /// Does something in the session, with whoever holds the home.
    fn with<T>(
        &self,
        mut act: impl FnMut(&dyn Backend, backend::Place<'_>) -> Step<T>,
    ) -> Result<T, Error> {
        self.home.each(|up| match self.seated(up) {
            Step::Done(Ok(session)) => act(&**up, self.place_at(session)),
            Step::Done(Err(error)) => Step::Done(Err(error)),
            Step::Again => Step::Again,
        })
    }

    const fn place_at(&self, session: Seq) -> backend::Place<'_> {
        backend::Place { session, agent: &self.agent, token: self.token }
    }

    /// The session with this holder, opened where it is not open yet.
    fn seated(&self, up: &Arc<dyn Backend>) -> Step<Seq> {
        let mut place = self.place();
        match place.with(up) {
            // The kernel of this process says on the record that it is closed.
            Some(session) if !place.closed || up.held().is_some() => {
                return Step::Done(Ok(session));
            }
            _ if place.closed => {
                let refused = Refused::new(Reason::NoSession).field("session");
                return Step::Done(Err(Error::Refused(refused)));
            }
            _ => {}
        }
        if self.home.is_agents() {
            // It ended with the holder that it was opened at.
            return Step::Done(Err(Error::HolderGone));
        }
        let opening = Opening { agent: self.agent.as_str().to_owned(), token: self.token };
        let opened = up.ask(Ask::Open(opening), Duration::MAX);
        if let Step::Done(Ok(session)) = opened {
            place.number = session;
            place.at = Some((Arc::downgrade(up), session));
        }
        opened
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        // Every change is one step that can't break off half way.
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The session's number with this holder, where it was opened there.
    fn with(&self, up: &Arc<dyn Backend>) -> Option<Seq> {
        let (with, session) = self.at.as_ref()?;
        std::ptr::addr_eq(with.as_ptr(), Arc::as_ptr(up)).then_some(*session)
    }
}
