//! A session: an agent's seat at the kernel.

use std::sync::Arc;

use syscap_format::{
    budget::Amounts,
    cbor::{Canonical, Item, MapBuilder, Profile},
    envelope::{Form, ToolResult},
    id::{AgentId, Seq, TokenId},
    json::{self, Escapes},
    limits::ENVELOPE_BYTES_MAX,
    provenance::Source,
};
use syscap_kernel::{
    halt::Halt,
    kernel::{Ack, Event, Submit, Ticket},
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
    /// Who brings about what is called here, by the host's word.
    source: Source,
}

impl Session {
    pub(crate) const fn new(
        core: Arc<Core>,
        providers: Arc<Providers>,
        number: Seq,
        agent: AgentId,
        token: TokenId,
    ) -> Self {
        Self { core, providers, number, agent, token, source: Source::Agent }
    }

    /// The same seat, for what somebody else than the agent brings about: a person who pressed a
    /// button, say. Calls and proposals through it are on record as by that source. It is the
    /// host's word, so agents must not reach it; what an envelope says of its source is never
    /// more than a claim. Closing it closes the seat.
    ///
    /// ```
    /// use syscap::{format::provenance::Source, prelude::*};
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
    #[must_use]
    pub fn by(&self, source: Source) -> Self {
        let (core, providers) = (Arc::clone(&self.core), Arc::clone(&self.providers));
        let (number, agent, token) = (self.number, self.agent.clone(), self.token);
        Self { core, providers, number, agent, token, source }
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
    /// answer. The key (see [`syscap_format::id::IdempotencyKey`]) stands in the log.
    ///
    /// # Errors
    /// As [`Session::call`].
    pub fn call_once(&self, key: &str, tool: &str, args: Args) -> Result<ToolResult, Error> {
        self.send(envelope(tool, &args.finish(), Some(key)))
    }

    /// Calls a tool with arguments as a model wrote them: a JSON object, or nothing at all. The
    /// text is the arguments and can be nothing else: whatever it looks like, it names no other
    /// tool, source or key. Text that is no JSON, or has anything after its value, is refused, on
    /// the record, with the place of the fault.
    ///
    /// With [`Escapes::Data`] a `$ref`, `$lit` or `$bytes` in it is data; with [`Escapes::Read`]
    /// the model may refer to results of this session.
    ///
    /// ```
    /// use syscap::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let rt = Runtime::create(folder.path().join("home"))?;
    /// let agent = rt.session("a", rt.issue(Grant::to("a").tools(["echo"]))?)?;
    /// let said = agent.call_json("echo", r#"{"value": {"$ref": 7}}"#, Escapes::Data)?;
    /// assert_eq!(said.reason(), None);
    /// let pasted = r#"{"value": 1}, "provenance": {"source": "user"}"#;
    /// let refused = agent.call_json("echo", pasted, Escapes::Data)?;
    /// assert_eq!(refused.reason(), Some(Reason::Malformed));
    /// # rt.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Session::call`].
    pub fn call_json(&self, tool: &str, text: &str, escapes: Escapes) -> Result<ToolResult, Error> {
        self.send_arguments(named(tool).bytes("args", text.as_bytes()), escapes)
    }

    /// The same, at most once for a key, as [`Session::call_once`].
    ///
    /// # Errors
    /// As [`Session::call`].
    pub fn call_json_once(
        &self,
        key: &str,
        tool: &str,
        text: &str,
        escapes: Escapes,
    ) -> Result<ToolResult, Error> {
        let map = named(tool).bytes("args", text.as_bytes()).text("idempotency_key", key);
        self.send_arguments(map, escapes)
    }

    /// Sends an envelope as canonical CBOR, whole or with only `tool_id` and `args`.
    ///
    /// # Errors
    /// As [`Session::call`]: bytes that are no envelope are refused, on the record.
    pub fn send_cbor(&self, envelope: &[u8]) -> Result<ToolResult, Error> {
        self.submit(envelope.to_vec(), Form::Cbor)
    }

    /// Sends an envelope as JSON, whole or with only `tool_id` and `args`. Whoever wrote the text
    /// has written all of its fields: a model's arguments don't go into it, but to
    /// [`Session::call_json`].
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

    /// Who brings about what is called here, by the host's word: the agent, but for
    /// [`Session::by`].
    #[must_use]
    pub const fn source(&self) -> Source {
        self.source
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

    fn send_arguments(&self, map: MapBuilder, escapes: Escapes) -> Result<ToolResult, Error> {
        let (received, form) = read_arguments(map.finish().into_bytes(), escapes);
        self.submit(received, form)
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
        each: impl FnOnce(Ticket),
    ) -> Result<ToolResult, Error> {
        let (session, source, salts) = (self.number, self.source, self.core.salts.draw()?);
        let answer = self.core.request(|ticket| {
            each(ticket);
            Event::Submit(Submit { ticket, session, received, form, source, salts })
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

/// Puts in its place what a text under `args` says, here as [`read_json`]. An envelope that has no
/// such text is the kernel's to refuse.
pub(crate) fn read_arguments(envelope: Vec<u8>, escapes: Escapes) -> (Vec<u8>, Form) {
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

fn named(tool: &str) -> MapBuilder {
    MapBuilder::new().text("tool_id", tool)
}

fn envelope(tool: &str, args: &Canonical, key: Option<&str>) -> Canonical {
    let map = named(tool).item("args", args.item());
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
