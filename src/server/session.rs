//! A session at the kernel of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use syscap_format::json::{self, Escapes};
use syscap_format::{
    AgentId, Amounts, CallSalts, Canonical, ENVELOPE_BYTES_MAX, Form, Input, Item, Label,
    MapBuilder, Profile, Proof, Reason, Refused, Salt, Seq, SnapshotId, Source, TEXT_BYTES_MAX,
    TokenId, ToolResult, VaultText,
};
use syscap_kernel::{Ack, Event, Halt, Proposal, Submit, Ticket};

use crate::driver::backoff::Backoff;
use crate::driver::core::{Answer, Core};
use crate::error::Error;
use crate::runtime::session::call::{CallContext, Sent, Written};
use crate::runtime::state::Changed;
use crate::server::notify;
use crate::tools::Providers;
use crate::tools::provide::Cancel;

/// The key under which what a user said is committed to.
const TEXT: u64 = 12;
/// Most bytes of something that a user said.
const SAID_BYTES_MAX: usize = 1 << 20;

/// A session, bound to one agent and one token. Calls through it may name no others.
pub(crate) struct LocalSession {
    core: Arc<Core>,
    providers: Arc<Providers>,
    number: Seq,
    agent: AgentId,
    token: TokenId,
    backoff: Backoff,
}

impl LocalSession {
    pub(crate) fn new(
        core: Arc<Core>,
        providers: Arc<Providers>,
        number: Seq,
        agent: AgentId,
        token: TokenId,
    ) -> Self {
        Self { core, providers, number, agent, token, backoff: Backoff::default() }
    }

    /// Sends an envelope. The answer is on record, and durable, when this returns. The run is
    /// notified of `cancel`.
    pub(crate) fn send(&self, sent: Sent, cancel: &Cancel) -> Result<ToolResult, Error> {
        let mut answers = self.send_all(vec![sent], cancel)?;
        answers.pop().ok_or(Error::Halted(Halt::Halted))
    }

    /// Counts refused calls, and has their caller wait where they are too many: on its own thread,
    /// before it is told, with nothing locked.
    pub(crate) fn hold_up<'a>(&self, answers: impl IntoIterator<Item = &'a ToolResult>) {
        let count = |refused, answer| self.backoff.answered(answer) || refused;
        if answers.into_iter().fold(false, count) {
            self.backoff.wait();
        }
    }

    /// How often it was refused.
    pub(crate) const fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// Sends an envelope, and tells `done` the answer: on this thread, or on another where what it
    /// runs outlasts its limit; this one comes back when that has ended.
    pub(crate) fn send_then(
        &self,
        sent: Sent,
        cancel: &Cancel,
        done: impl FnOnce(Result<ToolResult, Error>) + Send + 'static,
    ) {
        let salts = match self.core.salts.draw() {
            Ok(salts) => salts,
            Err(error) => return done(Err(error.into())),
        };
        let envelope = read(sent, salts);
        let (named, is_noted) = (Arc::new(AtomicU64::new(0)), !envelope.context.is_empty());
        let event = |ticket: Ticket| {
            named.store(ticket.0, Ordering::SeqCst);
            self.event(ticket, envelope)
        };
        let (core, providers, noted) =
            (Arc::clone(&self.core), Arc::clone(&self.providers), Arc::clone(&named));
        self.core.request_then(event, cancel, move |answer| {
            if is_noted {
                providers.forget(Ticket(noted.load(Ordering::SeqCst)));
            }
            done(match answer {
                Ok(Answer::Reply(result)) => {
                    core.counters.answered(&result);
                    notify::answered(&core, &result);
                    Ok(*result)
                }
                Ok(Answer::Ack(_)) => Err(Error::Halted(Halt::Halted)),
                Err(error) => Err(error),
            });
        });
    }

    /// Sends envelopes together: what they need durable is committed together. The answers are in
    /// their order.
    pub(crate) fn send_all(
        &self,
        sent: Vec<Sent>,
        cancel: &Cancel,
    ) -> Result<Vec<ToolResult>, Error> {
        let read = |sent| Ok(read(sent, self.core.salts.draw()?));
        self.send_read(sent.into_iter().map(read).collect::<Result<_, Error>>()?, cancel)
    }

    /// Sends an envelope with its holder's proof, who is elsewhere.
    pub(crate) fn prove(
        &self,
        received: Vec<u8>,
        proof: Option<Proof>,
        source: Source,
        cancel: &Cancel,
    ) -> Result<ToolResult, Error> {
        let (context, salts) = (CallContext::default(), self.core.salts.draw()?);
        let envelope = Envelope { received, form: Form::Cbor, source, context, salts, proof };
        let mut answers = self.send_read(vec![envelope], cancel)?;
        answers.pop().ok_or(Error::Halted(Halt::Halted))
    }

    fn send_read(&self, all: Vec<Envelope>, cancel: &Cancel) -> Result<Vec<ToolResult>, Error> {
        let (count, mut all) = (all.len(), all.into_iter());
        let (mut noted, mut answers) = (Vec::new(), Vec::new());
        answers.resize_with(count, || None);
        let event = |ticket| {
            let envelope = all.next()?;
            if !envelope.context.is_empty() {
                noted.push(ticket);
            }
            Some(self.event(ticket, envelope))
        };
        let ended = self.core.request_all(count, event, cancel, |number, answer| {
            if let (Answer::Reply(result), Some(place)) = (answer, answers.get_mut(number)) {
                self.core.counters.answered(&result);
                *place = Some(*result);
            }
        });
        noted.into_iter().for_each(|ticket| self.providers.forget(ticket));
        answers.iter().flatten().for_each(|result| notify::answered(&self.core, result));
        ended?;
        answers.into_iter().collect::<Option<_>>().ok_or(Error::Halted(Halt::Halted))
    }

    /// A call, as the kernel takes it. What goes beside its envelope is kept for who runs it, until
    /// it is forgotten.
    fn event(&self, ticket: Ticket, envelope: Envelope) -> Event {
        let Envelope { received, form, source, context, salts, proof } = envelope;
        let unasked = context.unasked;
        if !context.is_empty() {
            self.providers.note(ticket, context);
        }
        Event::Submit(Submit {
            ticket,
            session: self.number,
            received,
            form,
            source,
            salts,
            proof,
            unasked,
        })
    }

    /// Posts model tokens and credits that were used, after the fact.
    pub(crate) fn charge(&self, amounts: Amounts) -> Result<Seq, Error> {
        acknowledged(self.core.request(|ticket| Event::Charge(ticket, self.number, amounts)))
    }

    /// Puts on record what a user said: in parts, where it is longer than a text may be. They are
    /// committed together; the record of the first is given back.
    pub(crate) fn heard(&self, said: &str, label: Label) -> Result<Seq, Error> {
        check_said(said)?;
        let salts = parts(said).map(|_| self.core.salts.bytes().map(Salt::from_bytes));
        let salts = salts.collect::<Result<Vec<_>, _>>()?;
        let count = salts.len();
        let mut waiting = parts(said).zip(salts);
        let event = |ticket| {
            let (text, salt) = waiting.next()?;
            let text = VaultText { salt, field: TEXT, text: Box::from(text) };
            let (session, agent) = (self.number, self.agent.clone());
            let input = Input { session, agent, text: text.hash(), label };
            Some(Event::Heard(ticket, Box::new(input), text))
        };
        let mut answers = Vec::new();
        answers.resize_with(count, || None);
        self.core.request_all(count, event, &Cancel::new(), |number, answer| {
            if let Some(place) = answers.get_mut(number) {
                *place = Some(acknowledged(Ok(answer)));
            }
        })?;
        let all = answers.into_iter().map(|answer| answer.unwrap_or(Err(Halt::Halted.into())));
        let all = all.collect::<Result<Vec<Seq>, Error>>()?;
        all.first().copied().ok_or(Error::Halted(Halt::Halted))
    }

    /// Cancels a call of the session.
    pub(crate) fn cancel(&self, intent: Seq) -> Result<Seq, Error> {
        acknowledged(self.core.request(|ticket| Event::Cancel(ticket, self.number, intent)))
    }

    /// Changes the state of the session's agent.
    pub(crate) fn change(
        &self,
        writer: Source,
        inputs: Vec<Seq>,
        changes: Canonical,
        base: Option<SnapshotId>,
    ) -> Result<Changed, Error> {
        let (session, salts) = (self.number, self.core.salts.draw()?);
        let answer = self.core.request(|ticket| {
            let proposal = Proposal { ticket, session, writer, inputs, base, changes, salts };
            Event::Propose(Box::new(proposal))
        })?;
        match answer {
            Answer::Ack(Ok(Ack::State(snapshot, record))) => Ok(Changed { snapshot, record }),
            Answer::Ack(Err(refused)) => Err(Error::Refused(refused)),
            _ => Err(Error::Halted(Halt::Halted)),
        }
    }

    pub(crate) const fn agent(&self) -> &AgentId {
        &self.agent
    }

    pub(crate) const fn token(&self) -> TokenId {
        self.token
    }

    /// The record that opened it.
    pub(crate) const fn number(&self) -> Seq {
        self.number
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Closes it, and gives up what providers still run for it.
    pub(crate) fn leave(&self) -> Result<Seq, Error> {
        let ended = self.end()?;
        self.providers.unbind(self.number);
        Ok(ended)
    }

    /// Closes it for all who share it.
    pub(crate) fn end(&self) -> Result<Seq, Error> {
        acknowledged(self.core.request(|ticket| Event::CloseSession(ticket, self.number)))
    }
}

/// Something was said, and it is not too long.
pub(crate) fn check_said(said: &str) -> Result<(), Error> {
    match said.len() {
        1..=SAID_BYTES_MAX => Ok(()),
        _ => Err(Refused::new(Reason::TooLarge).field("text").into()),
    }
}

/// A text in parts, none longer than a text of the vault may be.
fn parts(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (part, rest) = text.split_at(text.floor_char_boundary(TEXT_BYTES_MAX));
        text = rest;
        Some(part).filter(|part| !part.is_empty())
    })
}

/// An envelope that was read, and what goes beside it.
struct Envelope {
    received: Vec<u8>,
    form: Form,
    source: Source,
    context: CallContext,
    salts: CallSalts,
    proof: Option<Proof>,
}

/// Reads an envelope in the caller's thread: the kernel does nothing else meanwhile.
fn read(sent: Sent, salts: CallSalts) -> Envelope {
    let Sent { envelope, form, source, context } = sent;
    let (received, form) = match form {
        Written::Cbor => (envelope, Form::Cbor),
        Written::Json => read_json(&envelope),
        Written::Arguments(escapes) => read_arguments(envelope, escapes),
    };
    Envelope { received, form, source, context, salts, proof: None }
}

/// Converts JSON here, in the caller's thread: the kernel does nothing else meanwhile. A too long
/// text is not read at all: the kernel refuses it for its length.
fn read_json(text: &[u8]) -> (Vec<u8>, Form) {
    if text.len() > ENVELOPE_BYTES_MAX {
        return (text.to_vec(), Form::Json);
    }
    match json::to_cbor(text) {
        Ok(converted) => (converted.into_bytes(), Form::Cbor),
        Err(error) => (text.to_vec(), Form::NotJson(error)),
    }
}

/// Puts in its place what a text under `args` says, here as [`read_json`]. An envelope that has no
/// such text is the kernel's to refuse.
fn read_arguments(envelope: Vec<u8>, escapes: Escapes) -> (Vec<u8>, Form) {
    let checked = match Item::check(&envelope, Profile::DATA) {
        Ok(map) if envelope.len() <= ENVELOPE_BYTES_MAX => map,
        _ => return (envelope, Form::Cbor),
    };
    let Some(text) = checked.get("args").and_then(Item::as_byte_string) else {
        return (envelope, Form::Cbor);
    };
    match json::arguments(text, escapes) {
        Ok(args) => {
            let whole = checked.entries().fold(MapBuilder::new(), |map, (key, value)| {
                map.item(key, if key == "args" { args.item() } else { value })
            });
            (whole.finish().into_bytes(), Form::Cbor)
        }
        Err(error) => (envelope, Form::NotArguments(error)),
    }
}

/// The record that a control event came to.
pub(crate) fn acknowledged(answer: Result<Answer, Halt>) -> Result<Seq, Error> {
    match answer? {
        Answer::Ack(Ok(Ack::Recorded(seq) | Ack::Cancelled(seq, _))) => Ok(seq),
        Answer::Ack(Err(refused)) => Err(Error::Refused(refused)),
        _ => Err(Error::Halted(Halt::Halted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No text that the kernel would have to lex reaches it, but one that it refuses for its
    /// length.
    #[test]
    fn json_is_read_before_the_kernel_sees_it() {
        let (received, form) = read_json(br#"{"tool_id": "echo"}"#);
        let same = MapBuilder::new().text("tool_id", "echo").finish();
        assert_eq!((received.as_slice(), form), (same.as_bytes(), Form::Cbor));
        let text = br#"{"tool_id": "echo""#;
        let (received, form) = read_json(text);
        assert_eq!(received, text);
        assert!(matches!(form, Form::NotJson(_)), "{form:?}");
        let long = vec![b' '; ENVELOPE_BYTES_MAX + 1];
        assert_eq!(read_json(&long), (long.clone(), Form::Json));
        let (_, form) = read_json(long.get(1..).unwrap());
        assert!(matches!(form, Form::NotJson(_)), "{form:?}");
    }
}
