//! A call, as it is put together and made.

use std::ops::Deref;
use std::sync::Arc;

use syscap_format::json::Escapes;
use syscap_format::{MapBuilder, Reason, Refused, Source, ToolResult};

use crate::runtime::sent::{CallContext, Sent, Written};
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
        let Self { session, what, key, trace, context, source, cancel } = self;
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
