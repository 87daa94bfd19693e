//! A session, in this process or at the holder.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use syscap_format::{
    budget::Amounts,
    cbor::{Canonical, MapBuilder},
    envelope::Form,
    id::{AgentId, Seq, SnapshotId, TokenId},
    json::Escapes,
    provenance::Source,
    reason::{Reason, Refused},
};

use super::{
    Answer, Written,
    link::{Link, Seat, Up},
};
use crate::{
    Args, Changed, ConnectionId, Error, Session,
    attach::{
        Ask, Proposed, SessionTicket,
        client::Step,
        reply::{read_answer, read_changed, read_record, read_taken, read_ticket},
    },
    session::{read_arguments, read_json},
};

/// What goes with a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallWith {
    /// The idempotency key: a repeat gets the first answer.
    pub key: Option<String>,
    /// The caller's trace id.
    pub trace: Option<String>,
    /// The caller's own name for the call, which the tool's provider is told; 0 for none.
    pub tag: u64,
}

/// An agent's seat at the kernel, whoever holds the home. It can be shared between threads.
///
/// One that is dropped leaves its session open until the process ends, or the home is closed.
pub struct Caller {
    link: Arc<Link>,
    agent: AgentId,
    token: TokenId,
    /// The session, and with which holder it is open.
    seated: Mutex<Option<(u64, Seated)>>,
}

#[derive(Clone)]
enum Seated {
    Here(Arc<Session>),
    There(Seq),
}

impl Caller {
    pub(super) fn open(link: &Arc<Link>, agent: &str, token: TokenId) -> Result<Self, Error> {
        let got = agent.to_owned();
        let agent = AgentId::new(agent).ok_or(Error::BadName { what: "the agent", got })?;
        let (link, seated) = (Arc::clone(link), Mutex::new(None));
        let caller = Self { link, agent, token, seated };
        caller.link.each(|up| match caller.seated(up) {
            Step::Done(opened) => Step::Done(opened.map(drop)),
            Step::Again => Step::Again,
        })?;
        Ok(caller)
    }

    /// Takes a session that was lent, with the holder that there is.
    pub(super) fn take(link: &Arc<Link>, ticket: &SessionTicket) -> Result<Self, Error> {
        let (number, taken) = link.each(|up| match &up.seat {
            Seat::Attached(holder) => {
                let number = up.number;
                holder.ask(&Ask::Take(ticket.clone()), |item| Ok((number, read_taken(item)?)))
            }
            // Who holds the home opens sessions, and takes none.
            Seat::Held(_) => Step::Done(Err(Refused::new(Reason::WrongLane).into())),
        })?;
        let seated = Mutex::new(Some((number, Seated::There(taken.session))));
        Ok(Self { link: Arc::clone(link), agent: taken.agent, token: taken.token, seated })
    }

    /// Gives the session away: whoever takes the ticket can call through it, on the agents' lane
    /// too, and nobody else any more. Where nobody does it ends with this process.
    ///
    /// # Errors
    /// [`Error::Unserved`] where this process holds the home and serves it to nobody;
    /// [`Error::Refused`] where so many are lent that there is no room; [`Error::HolderGone`].
    pub fn lend(self) -> Result<SessionTicket, Error> {
        self.with(|up, seated| match (seated, &up.seat) {
            (Seated::Here(session), Seat::Held(held)) => Step::Done(held.lend(session)),
            (Seated::There(session), Seat::Attached(holder)) => {
                holder.ask(&Ask::Lend(session), read_ticket)
            }
            _ => Step::Again,
        })
    }

    /// The agent.
    #[must_use]
    pub const fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// The token.
    #[must_use]
    pub const fn token(&self) -> TokenId {
        self.token
    }

    /// Sends an envelope, whole or with only `tool_id` and `args`. `tag` is the caller's own
    /// name for the call, which the tool's provider is told; 0 for none.
    ///
    /// # Errors
    /// [`Error::HolderGone`] where the holder went before it had answered: what the call came to
    /// stands in the log after the recovery, and it is not sent again. Else why there is no
    /// holder. A refusal is an answer.
    pub fn send(&self, envelope: &[u8], form: Written, tag: u64) -> Result<Answer, Error> {
        self.with(|up, seated| {
            let step = match (seated, &up.seat) {
                (Seated::Here(session), _) => {
                    return Step::Done(send(&session, (envelope.to_vec(), form), tag));
                }
                (Seated::There(session), Seat::Attached(holder)) => {
                    let envelope = envelope.to_vec();
                    holder.ask(&Ask::Call { session, envelope, form, tag }, read_answer)
                }
                (Seated::There(_), Seat::Held(_)) => Step::Again,
            };
            match step {
                // The kernel itself was ending: nothing has run.
                Step::Done(Ok(answer)) if answer.reason() == Some(Reason::Closing) => Step::Again,
                step => step,
            }
        })
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// As [`Caller::send`].
    pub fn call(&self, tool: &str, args: &Canonical, with: &CallWith) -> Result<Answer, Error> {
        let map = MapBuilder::new().item("args", args.item());
        self.send(envelope(map, tool, with).as_bytes(), Written::Cbor, with.tag)
    }

    /// Calls a tool with arguments as a model wrote them, as [`Session::call_json`].
    ///
    /// # Errors
    /// As [`Caller::send`].
    pub fn call_json(
        &self,
        tool: &str,
        text: &str,
        escapes: Escapes,
        with: &CallWith,
    ) -> Result<Answer, Error> {
        let map = MapBuilder::new().bytes("args", text.as_bytes());
        let envelope = envelope(map, tool, with);
        self.send(envelope.as_bytes(), Written::Arguments(escapes), with.tag)
    }

    /// As [`Session::charge`].
    ///
    /// # Errors
    /// As [`Session::charge`]; [`Error::HolderGone`].
    pub fn charge(&self, amounts: Amounts) -> Result<Seq, Error> {
        self.with(|up, seated| match (seated, &up.seat) {
            (Seated::Here(session), _) => Step::Done(session.charge(amounts)),
            (Seated::There(session), Seat::Attached(holder)) => {
                holder.ask(&Ask::Charge { session, amounts }, read_record)
            }
            (Seated::There(_), Seat::Held(_)) => Step::Again,
        })
    }

    /// As [`Session::propose`].
    ///
    /// # Errors
    /// As [`Session::propose`]; [`Error::HolderGone`].
    pub fn propose(&self, changes: Args) -> Result<Changed, Error> {
        self.change(Source::Agent, Vec::new(), changes.finish(), None)
    }

    /// As [`Session::propose_from`].
    ///
    /// # Errors
    /// As [`Session::propose_from`]; [`Error::HolderGone`].
    pub fn propose_from(&self, base: SnapshotId, changes: Args) -> Result<Changed, Error> {
        self.change(Source::Agent, Vec::new(), changes.finish(), Some(base))
    }

    pub(super) fn change(
        &self,
        writer: Source,
        inputs: Vec<Seq>,
        changes: Canonical,
        base: Option<SnapshotId>,
    ) -> Result<Changed, Error> {
        self.with(|up, seated| {
            let (inputs, changes) = (inputs.clone(), changes.clone());
            match (seated, &up.seat) {
                (Seated::Here(session), _) => {
                    Step::Done(session.change(writer, inputs, changes, base))
                }
                (Seated::There(session), Seat::Attached(holder)) => {
                    let proposed = Proposed { session, writer, inputs, base, changes };
                    holder.ask(&Ask::Propose(Box::new(proposed)), read_changed)
                }
                (Seated::There(_), Seat::Held(_)) => Step::Again,
            }
        })
    }

    /// Closes the session.
    ///
    /// # Errors
    /// As [`Session::close`]; [`Error::HolderGone`], with which it has ended too.
    pub fn close(self) -> Result<(), Error> {
        let Some((with, seated)) = self.lock().take() else { return Ok(()) };
        // With another holder it has ended already.
        let Some(up) = self.link.still(with) else { return Ok(()) };
        match (seated, &up.seat) {
            (Seated::Here(session), Seat::Held(held)) => {
                held.runtime.unbind(session.number());
                session.end().map(drop)
            }
            (Seated::There(session), Seat::Attached(holder)) => {
                match holder.ask(&Ask::Close(session), read_record) {
                    Step::Done(closed) => closed.map(drop),
                    // The holder ends, and the session with it.
                    Step::Again => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Does something in the session, with whoever holds the home.
    fn with<T>(&self, mut act: impl FnMut(&Up, Seated) -> Step<T>) -> Result<T, Error> {
        self.link.each(|up| match self.seated(up) {
            Step::Done(Ok(seated)) => act(up, seated),
            Step::Done(Err(error)) => Step::Done(Err(error)),
            Step::Again => Step::Again,
        })
    }

    /// The session with this holder, opened where it is not open yet.
    fn seated(&self, up: &Up) -> Step<Seated> {
        let mut place = self.lock();
        if let Some((with, seated)) = &*place
            && *with == up.number
        {
            return Step::Done(Ok(seated.clone()));
        }
        if self.link.is_agents() {
            // It ended with the holder that it was opened at.
            return Step::Done(Err(Error::HolderGone));
        }
        let agent = self.agent.as_str();
        let opened = match &up.seat {
            Seat::Held(held) => {
                Step::Done(held.runtime.session(agent, self.token).map(|session| {
                    held.runtime.bind(session.number(), ConnectionId::HOLDER);
                    Seated::Here(Arc::new(session))
                }))
            }
            Seat::Attached(holder) => {
                let ask = Ask::Open { agent: agent.to_owned(), token: self.token };
                holder.ask(&ask, |item| read_record(item).map(Seated::There))
            }
        };
        if let Step::Done(Ok(seated)) = &opened {
            *place = Some((up.number, seated.clone()));
        }
        opened
    }

    fn lock(&self) -> MutexGuard<'_, Option<(u64, Seated)>> {
        // It is set in one step.
        self.seated.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The envelope of a call with these arguments.
fn envelope(args: MapBuilder, tool: &str, with: &CallWith) -> Canonical {
    let map = args.text("tool_id", tool);
    let map = match &with.key {
        Some(key) => map.text("idempotency_key", key),
        None => map,
    };
    let map = match &with.trace {
        Some(trace) => {
            let source = MapBuilder::new().text("source", Source::Agent.name());
            map.item("provenance", source.text("trace", trace).finish().item())
        }
        None => map,
    };
    map.finish()
}

/// Sends an envelope through a session of this process.
pub(crate) fn send(
    session: &Session,
    (envelope, form): (Vec<u8>, Written),
    tag: u64,
) -> Result<Answer, Error> {
    let received = match form {
        Written::Cbor => (envelope, Form::Cbor),
        Written::Json => read_json(&envelope),
        Written::Arguments(escapes) => read_arguments(envelope, escapes),
    };
    session.send_tagged(received, tag).map(|result| Answer::of(&result))
}
