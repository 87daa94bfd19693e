//! A call, as it is put together and made.

use std::ops::Deref;
use std::sync::Arc;

use syscap_format::field::{Field, shape};
use syscap_format::json::Escapes;
use syscap_format::{
    DecodeError, DecodeFault, Decoder, Encoder, MapBuilder, Reason, Refused, Seq, Source,
    ToolResult,
};

use crate::runtime::session::Session;
use crate::tools::provide::Cancel;
use crate::{Args, Error};

/// A call that is not made yet: made by [`wait`](Call::wait) or [`submit`](Call::submit).
#[must_use]
pub struct Call<'s> {
    session: Handle<'s>,
    what: What,
    key: Option<String>,
    trace: Option<String>,
    context: CallContext,
    source: Source,
    cancel: Cancel,
}

/// A session, as a call has it.
pub(crate) enum Handle<'s> {
    Lent(&'s Session),
    Shared(Arc<Session>),
}

impl Deref for Handle<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        match self {
            Self::Lent(session) => session,
            Self::Shared(session) => session,
        }
    }
}

/// What is called.
enum What {
    Args(String, Args),
    Text(String, Vec<u8>, Escapes),
    Envelope(Vec<u8>, Written),
}

impl<'s> Call<'s> {
    pub(crate) fn of(session: Handle<'s>, tool: &str) -> Self {
        Self::new(session, What::Args(tool.to_owned(), Args::new()))
    }

    pub(crate) fn raw(session: Handle<'s>, envelope: &[u8], form: Written) -> Self {
        Self::new(session, What::Envelope(envelope.to_vec(), form))
    }

    fn new(session: Handle<'s>, what: What) -> Self {
        let source = session.source;
        let (context, cancel) = (CallContext::default(), Cancel::new());
        Self { session, what, key: None, trace: None, context, source, cancel }
    }

    /// The arguments; without any the map is empty. Of an envelope this changes nothing.
    pub fn args(mut self, args: Args) -> Self {
        if let What::Args(tool, _) | What::Text(tool, ..) = self.what {
            self.what = What::Args(tool, args);
        }
        self
    }

    /// The arguments as a model wrote them: a JSON object, or nothing at all. The text is the
    /// arguments and can be nothing else: whatever it looks like, it names no other tool, source or
    /// key. Text that is no JSON, or has anything after its value, is refused, on the record, with
    /// the place of the fault. Of an envelope this changes nothing.
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
    /// let call = |text| agent.request("echo").json(text, Escapes::Data).wait();
    /// assert_eq!(call(r#"{"value": {"$ref": 7}}"#)?.reason(), None);
    /// let pasted = call(r#"{"value": 1}, "provenance": {"source": "user"}"#)?;
    /// assert_eq!(pasted.reason(), Some(Reason::Malformed));
    /// # rt.close()
    /// # }
    /// ```
    pub fn json(mut self, text: &str, escapes: Escapes) -> Self {
        if let What::Args(tool, _) | What::Text(tool, ..) = self.what {
            self.what = What::Text(tool, text.as_bytes().to_vec(), escapes);
        }
        self
    }

    /// Makes the call at most once for a key: a repeat with the same arguments gets the first
    /// answer. The key (see [`syscap_format::IdempotencyKey`]) stands in the log. An envelope has its
    /// own.
    pub fn key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// The caller's trace id. An envelope has its own.
    pub fn trace(mut self, trace: &str) -> Self {
        self.trace = Some(trace.to_owned());
        self
    }

    /// What goes beside the call, for the server alone.
    pub fn context(mut self, context: CallContext) -> Self {
        self.context = context;
        self
    }

    /// The origin of the call, as the host states it: the session's where nothing is said. See
    /// [`Session::by`].
    pub const fn from(mut self, source: Source) -> Self {
        self.source = source;
        self
    }

    /// Cancelled from elsewhere it tells the tool that nobody waits for the result: see
    /// [`ToolCall::is_cancelled`](crate::host::ToolCall::is_cancelled). A run that has begun is
    /// ended, metered and recorded all the same.
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    pub(crate) fn cancels(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Makes it. The answer is on record, and durable, when this returns.
    ///
    /// # Errors
    /// As [`Session::call`].
    pub fn wait(self) -> Result<ToolResult, Error> {
        let (session, sent, cancel) = self.parts();
        session.make(sent, &cancel)
    }

    /// Makes it, and does not wait: `done` is told what came of it, once, on a thread that it must
    /// not block. If this process is connected to the server, no thread waits for the answer; if it
    /// is the server, a thread runs the call. Its [`cancel`](Call::cancel) is not heard.
    pub fn submit(self, done: impl FnOnce(Result<ToolResult, Error>) + Send + 'static) {
        let (session, sent, _) = self.parts();
        session.submit(sent, done);
    }

    fn parts(self) -> (Handle<'s>, Sent, Cancel) {
        let Self { session, what, key, trace, mut context, source, cancel } = self;
        context.unasked |= session.home.asks_nobody();
        let (map, form) = match what {
            What::Envelope(envelope, form) => {
                return (session, Sent { envelope, form, source, context }, cancel);
            }
            What::Args(tool, args) => {
                let map = MapBuilder::new().item("args", args.finish().item());
                (map.text("tool_id", &tool), Written::Cbor)
            }
            What::Text(tool, text, escapes) => {
                let map = MapBuilder::new().bytes("args", &text).text("tool_id", &tool);
                (map, Written::Arguments(escapes))
            }
        };
        let map = key.iter().fold(map, |map, key| map.text("idempotency_key", key));
        let map = trace.iter().fold(map, |map, trace| {
            let from = MapBuilder::new().text("source", source.name()).text("trace", trace);
            map.item("provenance", from.finish().item())
        });
        let envelope = map.finish().into_bytes();
        (session, Sent { envelope, form, source, context }, cancel)
    }
}

impl Session {
    /// Makes calls of this session together, none of which waits for another's records to be
    /// durable: what all of them need is committed together. The answers are in the calls' order. If
    /// this process holds the home, they are also decided and run in it, one after the other. A call
    /// that has not begun when it is revoked or frozen, or when the home closes, does not run
    /// ([`NotRun`](Reason::NotRun)). Another server takes 64 of them at once, in any order. Their
    /// [`cancel`](Call::cancel) is not heard.
    ///
    /// All are under way at once where this process holds the home, and 64 elsewhere: more than the
    /// token's `concurrent` (16 of [`Budget::standard`](syscap_format::Budget::standard))
    /// are refused as [`ConcurrencyLimit`](Reason::ConcurrencyLimit), and more than the home takes
    /// ([`HomeLimits::in_flight_max`](syscap_format::HomeLimits)) as
    /// [`Overloaded`](Reason::Overloaded).
    ///
    /// ```
    /// use syscap::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let rt = Runtime::create(folder.path().join("home"))?;
    /// let grant = Grant::to("a").tools(["fs.write"]).workspace();
    /// let grant = grant.budget(Budget::standard().with(Dimension::Concurrent, 3));
    /// let agent = rt.session("a", rt.issue(grant)?)?;
    /// let write = |path| agent.request("fs.write").args(args! { "path": path, "text": "hello" });
    /// let written = agent.wait_all(["a.txt", "b.txt", "c.txt"].map(write))?;
    /// assert!(written.iter().all(|answer| answer.status() == Status::Ok));
    /// # rt.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Session::call`], for all of them: some may have been carried out even so, as the log
    /// says. One that is of another session, or too long to be sent to another server, is an error
    /// before any is sent.
    pub fn wait_all<'c>(
        &self,
        calls: impl IntoIterator<Item = Call<'c>>,
    ) -> Result<Vec<ToolResult>, Error> {
        let mut all = Vec::new();
        for call in calls {
            if !Arc::ptr_eq(&call.session.place, &self.place) {
                return Err(Refused::new(Reason::NotBound).field("session").into());
            }
            all.push(call.parts().1);
        }
        let answers = self.with(|up, at| up.call_all(at, &all))?;
        // What an ending server turned away is sent to the next one.
        let answers = all.into_iter().zip(answers).map(|(sent, answer)| match answer {
            Some(answer) => Ok(answer),
            None => self.make(sent, &Cancel::new()),
        });
        answers.collect()
    }

    /// Makes a call, whoever serves the home.
    pub(super) fn make(&self, sent: Sent, cancel: &Cancel) -> Result<ToolResult, Error> {
        let mut sent = Some(sent);
        self.with(|up, at| up.call(at, &mut sent, cancel))
    }
}

/// How an envelope is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Canonical CBOR.
    Cbor,
    /// JSON.
    Json,
    /// Canonical CBOR whose `args` are a byte string: the text of
    /// [`Call::json`](crate::Call::json).
    Arguments(Escapes),
}

impl Written {
    const ALL: [Self; 4] =
        [Self::Cbor, Self::Json, Self::Arguments(Escapes::Data), Self::Arguments(Escapes::Read)];

    const fn code(self) -> u64 {
        match self {
            Self::Cbor => 1,
            Self::Json => 2,
            Self::Arguments(Escapes::Data) => 3,
            Self::Arguments(Escapes::Read) => 4,
        }
    }
}

impl Field for Written {
    const SHAPE: &'static str = "uint Written";

    fn put(&self, encoder: &mut Encoder) {
        encoder.uint(self.code());
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(DecodeFault::Value);
        let code = decoder.uint()?;
        Self::ALL.into_iter().find(|form| form.code() == code).ok_or(fault)
    }
}

/// Most calls that one can be made on behalf of.
const WITHIN_MAX: usize = 64;

shape! {
    /// The part of a call beside its envelope, for the server. None of it is recorded.
    #[derive(Default)]
    pub struct CallContext {
        /// The caller's own name for the call, which the tool's provider is told; 0 for none.
        1 => pub tag: u64,
        /// The intents of calls that this process made and runs, on whose behalf it asks a person
        /// by this one. While it runs their time stands still, for up to 600 s of each: it is
        /// neither measured nor counted toward their limit. A number that names no such call is
        /// ignored. Not on the agents' lane.
        2 => pub within: Vec<Seq> [..WITHIN_MAX],
        /// Nobody is there to be asked: where the call would wait for a person it is refused at
        /// once.
        3 => pub unasked: bool,
    }
}

impl CallContext {
    /// Most intents in [`within`](Self::within).
    pub const WITHIN_MAX: usize = WITHIN_MAX;

    /// A name, and nothing else.
    pub const fn tag(tag: u64) -> Self {
        Self { tag, within: Vec::new(), unasked: false }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.tag == 0 && self.within.is_empty()
    }
}

shape! {
    /// An envelope on its way to the kernel.
    pub(crate) struct Sent {
        1 => pub(crate) envelope: Vec<u8>,
        2 => pub(crate) form: Written,
        /// The origin of the call, as the host states it.
        3 => pub(crate) source: Source,
        4 => pub(crate) context: CallContext,
    }
}
