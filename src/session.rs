//! A session: an agent's seat at the kernel.

use std::sync::Arc;

use syscap_kernel::{
    budget::Amounts,
    cbor::{Canonical, MapBuilder},
    envelope::{Form, ToolResult},
    halt::Halt,
    id::{AgentId, Seq, TokenId},
    json,
    kernel::{Ack, Event, Submit, Ticket},
    limits::ENVELOPE_BYTES_MAX,
};

use crate::{
    args::Args,
    core::{Answer, Core},
    error::Error,
    tools::Providers,
};

/// A seat at the kernel, bound to one agent and one token. Calls through it may name no others.
///
/// It is the capability in process: who has the `Session` can call, and nobody who has only
/// the token's id. It can be used from several threads at once.
pub struct Session {
    pub(crate) core: Arc<Core>,
    providers: Arc<Providers>,
    number: Seq,
    agent: AgentId,
    token: TokenId,
}

impl Session {
    pub(crate) const fn new(
        core: Arc<Core>,
        providers: Arc<Providers>,
        number: Seq,
        agent: AgentId,
        token: TokenId,
    ) -> Self {
        Self { core, providers, number, agent, token }
    }

    /// Calls a tool. The answer is on record, and durable, when this returns.
    ///
    /// # Errors
    /// [`Error::Halted`] or [`Error::Home`] where the kernel has stopped, and only then: a
    /// refusal is an answer, raised by [`ToolResult::text`] or [`ToolResult::value`].
    pub fn call(&self, tool: &str, args: Args) -> Result<ToolResult, Error> {
        self.send(envelope(tool, &args.finish(), None))
    }

    /// Calls a tool at most once for a key: a repeat with the same arguments gets the first
    /// answer. The key (see [`syscap_kernel::id::IdempotencyKey`]) stands in the log.
    ///
    /// # Errors
    /// As [`Session::call`].
    pub fn call_once(&self, key: &str, tool: &str, args: Args) -> Result<ToolResult, Error> {
        self.send(envelope(tool, &args.finish(), Some(key)))
    }

    /// Sends an envelope as canonical CBOR, whole or with only `tool_id` and `args`.
    ///
    /// # Errors
    /// As [`Session::call`]: bytes that are no envelope are refused, on the record.
    pub fn send_cbor(&self, envelope: &[u8]) -> Result<ToolResult, Error> {
        self.submit(envelope.to_vec(), Form::Cbor)
    }

    /// Sends an envelope as JSON, whole or with only `tool_id` and `args`.
    ///
    /// # Errors
    /// As [`Session::call`]: text that is no envelope is refused, on the record.
    pub fn send_json(&self, envelope: &[u8]) -> Result<ToolResult, Error> {
        let (received, form) = read_json(envelope);
        self.submit(received, form)
    }

    /// Sends an envelope under a name of the caller's own, which the provider of a delegated
    /// tool is told.
    pub(crate) fn send_tagged(
        &self,
        (received, form): (Vec<u8>, Form),
        tag: u64,
    ) -> Result<ToolResult, Error> {
        let mut named = None;
        let answer = self.request(received, form, |ticket| {
            self.providers.tag(ticket, tag);
            named = Some(ticket);
        });
        if let Some(ticket) = named {
            self.providers.untag(ticket);
        }
        answer
    }

    /// Posts model tokens and credits that were used, after the fact.
    ///
    /// # Errors
    /// [`Error::Refused`] where another dimension is posted; else as [`Session::call`].
    pub fn charge(&self, amounts: Amounts) -> Result<Seq, Error> {
        acknowledged(self.core.request(|ticket| Event::Charge(ticket, self.number, amounts)))
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

    /// The record that opened the session.
    #[must_use]
    pub const fn number(&self) -> Seq {
        self.number
    }

    /// Closes the session. One that is dropped stays open until the home is closed.
    ///
    /// # Errors
    /// [`Error::Halted`] or [`Error::Home`] where the kernel has stopped.
    pub fn close(self) -> Result<(), Error> {
        self.end().map(drop)
    }

    /// Closes the session for all who share it.
    pub(crate) fn end(&self) -> Result<Seq, Error> {
        acknowledged(self.core.request(|ticket| Event::CloseSession(ticket, self.number)))
    }

    fn send(&self, envelope: Canonical) -> Result<ToolResult, Error> {
        self.submit(envelope.into_bytes(), Form::Cbor)
    }

    fn submit(&self, received: Vec<u8>, form: Form) -> Result<ToolResult, Error> {
        self.request(received, form, |_| {})
    }

    fn request(
        &self,
        received: Vec<u8>,
        form: Form,
        named: impl FnOnce(Ticket),
    ) -> Result<ToolResult, Error> {
        let (session, salts) = (self.number, self.core.salts.draw()?);
        let answer = self.core.request(|ticket| {
            named(ticket);
            Event::Submit(Submit { ticket, session, received, form, salts })
        })?;
        match answer {
            Answer::Reply(result) => {
                self.core.counters.answered(&result);
                Ok(*result)
            }
            Answer::Ack(_) => Err(Error::Halted(Halt::Halted)),
        }
    }
}

/// Converts JSON here, in the caller's thread: the kernel does nothing else meanwhile. What is
/// too long isn't read at all: the kernel refuses it for its length.
pub(crate) fn read_json(text: &[u8]) -> (Vec<u8>, Form) {
    if text.len() > ENVELOPE_BYTES_MAX {
        return (text.to_vec(), Form::Json);
    }
    match json::to_cbor(text) {
        Ok(converted) => (converted.into_bytes(), Form::Cbor),
        Err(error) => (text.to_vec(), Form::NotJson(error)),
    }
}

fn envelope(tool: &str, args: &Canonical, key: Option<&str>) -> Canonical {
    let map = MapBuilder::new().text("tool_id", tool).item("args", args.item());
    match key {
        Some(key) => map.text("idempotency_key", key).finish(),
        None => map.finish(),
    }
}

/// The record that a control event came to.
pub(crate) fn acknowledged(answer: Result<Answer, Halt>) -> Result<Seq, Error> {
    match answer? {
        Answer::Ack(Ok(Ack::Recorded(seq))) => Ok(seq),
        Answer::Ack(Err(refused)) => Err(Error::Refused(refused)),
        _ => Err(Error::Halted(Halt::Halted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing that the kernel would have to lex goes to it, but what it refuses by length.
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
