//! Tools that a process runs itself: the kernel decides and records, a [`Provider`] runs.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::driver::guard::caught;
pub(crate) use crate::tools::location::Location;
pub use crate::tools::location::{LOCATION_BYTES_MAX, LocationText};
use syscap_format::field::{code, shape};
use syscap_format::{
    AgentId, Amounts, Canonical, DefinitionHash, Manifest, Refused, Retry, Seq, ToolId, TxOutcome,
};
use syscap_kernel::{Permit, Ran};

/// A call that the kernel has approved, and whose intent is durable.
#[derive(Debug)]
pub struct HostCall {
    /// The tool.
    pub tool: ToolId,
    /// Which definition of it the call was let through for: that of the offer, or of its
    /// manifest on record where it has none of its own. No other may run.
    pub definition: DefinitionHash,
    /// The agent that calls.
    pub agent: AgentId,
    /// The session through which it calls.
    pub session: Seq,
    /// Position of the intent: unique in the log.
    pub intent: Seq,
    /// The resolved arguments after defaults: a map that fits the manifest.
    pub args: Canonical,
    /// The reserved amounts. More must not be used.
    pub hold: Amounts,
    /// The largest result that can be delivered, in bytes.
    pub result_bytes_max: usize,
    /// True if the policy requires that the run changes nothing.
    pub read_only: bool,
    /// The caller's own name for the call; 0 where it gave none.
    pub tag: u64,
    /// Says when nobody waits for the run any more.
    pub cancel: Cancel,
}

/// The result of a run.
#[derive(Debug)]
pub struct HostRan {
    /// The result, or what went wrong. A reason that is not a tool's becomes
    /// [`Failed`](syscap_format::Refused::by_tool).
    pub result: Result<Canonical, Refused>,
    /// The effect's outcome.
    pub tx: TxOutcome,
    /// True if the tool failed by its own word: the result is then what the caller gets as the
    /// `output` of [`ToolFailed`](syscap_format::Reason::ToolFailed).
    pub failed: bool,
    /// The caller's next step after such a failure, where that is stricter than the reason's.
    pub retry: Option<Retry>,
    /// The amounts used beside the call itself. An amount beyond the hold is charged as the hold.
    pub used: Amounts,
}

impl HostRan {
    /// The result of a run whose tool reported no failure.
    pub const fn new(result: Result<Canonical, Refused>, tx: TxOutcome, used: Amounts) -> Self {
        Self { result, tx, failed: false, retry: None, used }
    }

    /// A run whose tool failed by its own word, with what it gave.
    pub const fn failed(output: Canonical, tx: TxOutcome, used: Amounts) -> Self {
        Self { result: Ok(output), tx, failed: true, retry: None, used }
    }

    /// Counts what was used and gives the permit back: for every run of a host's code, wherever
    /// it was.
    pub(crate) fn report<P>(self, mut permit: Permit<'_, P>) -> Ran<'_> {
        for (dimension, used) in self.used.iter().filter(|(d, _)| d.is_metered()) {
            let used = used.min(permit.hold().get(dimension));
            if let Err(over) = permit.meter(dimension, used) {
                // No more than the hold is asked for, once: it can't be over.
                return permit.failed(over.into(), self.tx);
            }
        }
        match self.result {
            Ok(output) if self.failed => permit.tool_failed(output, self.retry, self.tx),
            Ok(result) => permit.ok(result, self.tx),
            Err(why) => permit.failed(why, self.tx),
        }
    }
}

/// Takes what a run came to.
pub type Done = Box<dyn FnOnce(HostRan) + Send>;

/// Runs the tools that a process offers.
pub trait Provider: Send + Sync + 'static {
    /// Runs one call, and blocks until it has ended. Each call has a thread of its own.
    fn run(&self, call: HostCall) -> HostRan;

    /// Begins one call and returns at once; `done` is told what it came to, from any thread, and
    /// where it is dropped instead the run broke off. A provider that needs a thread for it gives
    /// both back, as this does: then it is [run](Self::run) on one.
    fn begin(&self, call: HostCall, done: Done) -> Option<(HostCall, Done)> {
        Some((call, done))
    }

    /// The location where a tool's runs act, in words: which machine, folder or account. Asked
    /// whenever the tool is offered. The person who is asked about a call sees it as `where`, and
    /// the answer holds at the same location only. Of one that is longer than
    /// [`LOCATION_BYTES_MAX`] the rest is shown as a digest. `None` if there is nothing to tell
    /// apart.
    fn location(&self, _tool: &ToolId) -> Option<String> {
        None
    }
}

/// A tool that is offered.
#[derive(Clone, Debug)]
pub(crate) struct Offered {
    pub(crate) manifest: Manifest,
    pub(crate) location: Option<Location>,
}

impl Offered {
    /// A tool with the location that its provider states. One that panics states none.
    pub(crate) fn by(provider: &dyn Provider, manifest: Manifest) -> Self {
        let location = caught(|| provider.location(&manifest.tool)).flatten();
        Self { location: location.map(Location::new), manifest }
    }
}

code! {
    /// How a tool that was offered stands.
    pub enum Standing {
        /// It can be called.
        Ready = 1 "ready",
        /// Its definition is not the one on record: calls are refused until it is accepted.
        Changed = 2 "changed",
        /// Its name, or an alias, is that of a tool that the holder runs itself.
        Taken = 3 "taken",
        /// It is not on record, and nobody was there to sign that: it can't be called until an
        /// operator accepts it.
        New = 4 "new",
    }
}

shape! {
    /// A tool that was offered, and how it stands.
    pub struct Offer {
        /// Its manifest as it is on record; as offered, where there is none.
        1 => pub manifest: Manifest,
        /// How it stands.
        2 => pub standing: Standing,
    }
}

impl Offer {
    /// The tool.
    pub const fn tool(&self) -> &ToolId {
        &self.manifest.tool
    }
}

/// Says that nobody waits any more: the run was given up, its caller has gone, or the home is
/// closing. A run that goes on is its provider's affair; what it brings is not delivered.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Said>);

#[derive(Default)]
struct Said {
    state: Mutex<State>,
    /// The cancellation above it: cancelling that one cancels this one.
    above: Option<Cancel>,
}

#[derive(Default)]
struct State {
    cancelled: bool,
    hooks: Vec<Box<dyn FnOnce() + Send>>,
}

impl Cancel {
    /// Not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// True if it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state().cancelled || self.0.above.as_ref().is_some_and(Self::is_cancelled)
    }

    /// One for a part of what this is for: said here it is said there, and not the other way.
    pub(crate) fn part(&self) -> Self {
        Self(Arc::new(Said { state: Mutex::default(), above: Some(self.clone()) }))
    }

    /// Says it. Each registered function is called once, on this thread; a panic of one keeps the
    /// others from nothing.
    pub fn cancel(&self) {
        let mut state = self.state();
        state.cancelled = true;
        let hooks = std::mem::take(&mut state.hooks);
        drop(state);
        for hook in hooks {
            // Its panic is nobody's who gives a run up.
            caught(hook).unwrap_or(());
        }
    }

    /// Calls `hook` when it is said; at once where it has been.
    pub fn on_cancel(&self, hook: impl FnOnce() + Send + 'static) {
        self.hear(Box::new(hook));
    }

    fn hear(&self, hook: Box<dyn FnOnce() + Send>) {
        let Some(above) = &self.0.above else { return self.add(hook) };
        // Once, whichever of the two is said first.
        let once = Arc::new(Mutex::new(Some(hook)));
        let call = move || {
            let hook = once.lock().unwrap_or_else(PoisonError::into_inner).take();
            hook.into_iter().for_each(|hook| hook());
        };
        above.hear(Box::new(call.clone()));
        self.add(Box::new(call));
    }

    fn add(&self, hook: Box<dyn FnOnce() + Send>) {
        let mut state = self.state();
        if state.cancelled {
            drop(state);
            hook();
        } else {
            state.hooks.push(hook);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cancel({})", self.is_cancelled())
    }
}
