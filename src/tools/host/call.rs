//! A call as the host's code sees it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use syscap_format::{AgentId, Amounts, Canonical, Dimension, Item, Reason, Refused, Seq, ToolId};
use syscap_kernel::{Meter, OverHold};

use crate::tools::provide::{Cancel, HostCall};

/// The arguments of a call: resolved, checked against the manifest, completed by defaults.
///
/// A getter fails where the tool asks for what it does not declare, or for another type.
#[derive(Clone, Copy, Debug)]
pub struct HostArgs<'a> {
    map: Item<'a>,
}

impl<'a> HostArgs<'a> {
    pub(crate) const fn new(map: Item<'a>) -> Self {
        Self { map }
    }

    /// The map itself.
    pub const fn as_item(self) -> Item<'a> {
        self.map
    }

    /// An argument, where it was given or has a default.
    pub fn get(self, name: &str) -> Option<Item<'a>> {
        self.map.get(name)
    }

    /// A text.
    ///
    /// # Errors
    /// [`Reason::MissingArgument`], [`Reason::BadArgument`].
    pub fn text(self, name: &str) -> Result<&'a str, Refused> {
        present(name, self.maybe_text(name)?)
    }

    /// A text, where it was given.
    ///
    /// # Errors
    /// [`Reason::BadArgument`].
    pub fn maybe_text(self, name: &str) -> Result<Option<&'a str>, Refused> {
        self.read(name, "text", Item::as_text)
    }

    /// An integer.
    ///
    /// # Errors
    /// [`Reason::MissingArgument`]; [`Reason::BadArgument`], also where it exceeds an `i64`.
    pub fn integer(self, name: &str) -> Result<i64, Refused> {
        present(name, self.maybe_integer(name)?)
    }

    /// An integer, where it was given.
    ///
    /// # Errors
    /// [`Reason::BadArgument`], also where it exceeds an `i64`.
    pub fn maybe_integer(self, name: &str) -> Result<Option<i64>, Refused> {
        let read = |item: Item<'a>| item.as_int().and_then(|int| i64::try_from(int).ok());
        self.read(name, "integer", read)
    }

    /// A boolean.
    ///
    /// # Errors
    /// [`Reason::MissingArgument`], [`Reason::BadArgument`].
    pub fn boolean(self, name: &str) -> Result<bool, Refused> {
        present(name, self.maybe_boolean(name)?)
    }

    /// A boolean, where it was given.
    ///
    /// # Errors
    /// [`Reason::BadArgument`].
    pub fn maybe_boolean(self, name: &str) -> Result<Option<bool>, Refused> {
        self.read(name, "boolean", Item::as_bool)
    }

    /// A byte string.
    ///
    /// # Errors
    /// [`Reason::MissingArgument`], [`Reason::BadArgument`].
    pub fn bytes(self, name: &str) -> Result<&'a [u8], Refused> {
        present(name, self.read(name, "bytes", Item::as_byte_string)?)
    }

    /// A refusal of an argument that is not of the form that a plan needs.
    pub fn bad(self, name: &str, allowed: &str) -> Refused {
        Refused::new(Reason::BadArgument).field(name).allowed(allowed)
    }

    fn read<T>(
        self,
        name: &str,
        kind: &str,
        read: impl FnOnce(Item<'a>) -> Option<T>,
    ) -> Result<Option<T>, Refused> {
        let Some(item) = self.map.get(name) else {
            return Ok(None);
        };
        read(item).map(Some).ok_or_else(|| self.bad(name, kind))
    }
}

fn present<T>(name: &str, found: Option<T>) -> Result<T, Refused> {
    found.ok_or_else(|| Refused::new(Reason::MissingArgument).field(name))
}

/// Counts what a run uses, until it has ended.
#[derive(Debug)]
pub(crate) struct UntilEnd(Mutex<Counted>);

#[derive(Debug)]
struct Counted {
    meter: Meter,
    closed: bool,
}

impl UntilEnd {
    pub(crate) const fn new(hold: Amounts) -> Self {
        Self(Mutex::new(Counted { meter: Meter::new(hold), closed: false }))
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, dimension: Dimension, amount: u64) -> Result<(), OverHold> {
        let mut counted = self.lock();
        if counted.closed {
            return Err(OverHold(dimension));
        }
        counted.meter.count(dimension, amount)
    }

    /// Closes the meter, and returns the amounts used. Later requests for more are refused: they
    /// could not be recorded.
    pub(crate) fn close(&self) -> Amounts {
        let mut counted = self.lock();
        counted.closed = true;
        *counted.meter.used()
    }

    pub(crate) fn hold(&self) -> Amounts {
        *self.lock().meter.hold()
    }
}

/// A call that the kernel approved, and whose intent is durable, as the host's code sees it.
#[derive(Debug)]
pub struct ToolCall {
    tool: ToolId,
    agent: AgentId,
    session: Seq,
    intent: Seq,
    args: Canonical,
    result_bytes_max: usize,
    read_only: bool,
    cancel: Cancel,
    meter: Arc<UntilEnd>,
}

impl ToolCall {
    pub(crate) fn new(call: HostCall) -> Self {
        Self {
            tool: call.tool,
            agent: call.agent,
            session: call.session,
            intent: call.intent,
            args: call.args,
            result_bytes_max: call.result_bytes_max,
            read_only: call.read_only,
            cancel: call.cancel,
            meter: Arc::new(UntilEnd::new(call.hold)),
        }
    }

    /// The arguments.
    pub fn args(&self) -> HostArgs<'_> {
        HostArgs::new(self.args.item())
    }

    /// A text argument.
    ///
    /// # Errors
    /// As [`HostArgs::text`].
    pub fn text(&self, name: &str) -> Result<&str, Refused> {
        self.args().text(name)
    }

    /// An integer argument.
    ///
    /// # Errors
    /// As [`HostArgs::integer`].
    pub fn integer(&self, name: &str) -> Result<i64, Refused> {
        self.args().integer(name)
    }

    /// A boolean argument.
    ///
    /// # Errors
    /// As [`HostArgs::boolean`].
    pub fn boolean(&self, name: &str) -> Result<bool, Refused> {
        self.args().boolean(name)
    }

    /// The tool.
    pub const fn tool(&self) -> &ToolId {
        &self.tool
    }

    /// The agent that calls.
    pub const fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// The session through which it calls.
    pub const fn session(&self) -> Seq {
        self.session
    }

    /// Position of the intent: unique in the log, and so a name for what the tool does elsewhere.
    pub const fn intent(&self) -> Seq {
        self.intent
    }

    /// The largest result that can be delivered, in bytes.
    pub const fn result_bytes_max(&self) -> usize {
        self.result_bytes_max
    }

    /// True if the policy requires that the run changes nothing. Only a tool that says that it
    /// honours `read_only`, or only reads, is asked.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The reserved amounts.
    pub fn hold(&self) -> Amounts {
        self.meter.hold()
    }

    /// Counts units *before* they are used.
    ///
    /// # Errors
    /// [`OverHold`]: the units must not be used.
    pub fn meter(&self, dimension: Dimension, amount: u64) -> Result<(), OverHold> {
        self.meter.count(dimension, amount)
    }

    /// True if the call was abandoned: the run's result is not delivered.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Ends when nobody waits any more.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { cancel: self.cancel.clone(), waker: None }
    }

    pub(crate) fn shared_meter(&self) -> Arc<UntilEnd> {
        Arc::clone(&self.meter)
    }

    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }
}

/// Ends when nobody waits for a run any more: see [`ToolCall::cancelled`].
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct Cancelled {
    cancel: Cancel,
    /// Whom to wake; registered once.
    waker: Option<Arc<Mutex<Waker>>>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(waker) = &self.waker {
            let mut waker = waker.lock().unwrap_or_else(PoisonError::into_inner);
            waker.clone_from(context.waker());
        } else {
            let waker = Arc::new(Mutex::new(context.waker().clone()));
            self.waker = Some(Arc::clone(&waker));
            self.cancel.on_cancel(move || {
                waker.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
            });
        }
        // After the waker is in its place: what is said from now on wakes it.
        if self.cancel.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
    }
}
