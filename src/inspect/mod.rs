//! A home's log, replayed to look at.

pub mod artifact;
pub mod erase;
pub(crate) mod granted;
pub mod learn;
pub mod plain;
pub(crate) mod recover;
pub mod remedy;
pub mod verify;
pub mod view;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use syscap_format::TokenId;
use syscap_kernel::{Kernel, PolicyEngine, Store, Tally, ToolsDelta};

use crate::error::Error;
use crate::runtime::grant::Grant;
use crate::runtime::state::{AgentState, states};
use crate::tools::Providers;

/// A home's log as it was replayed. It lends the kernel and never gives it away: its tools are
/// the home's own, and whoever had it could make them run with a store that keeps nothing.
///
/// ```
/// use syscap::{policy::{Policy, Preset}, prelude::*};
///
/// # fn main() -> Result<(), Error> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// # let home = folder.path().join("home");
/// let rt = Runtime::create(&home)?;
/// let agent = rt.session("a", rt.issue(Grant::to("a").tools(["fs.write"]).workspace())?)?;
/// agent.call("fs.write", args! { "path": "a.txt", "text": "hello" })?.text()?;
/// // What would another policy have said of it?
/// let other = Policy::preset(Preset::ReadOnly).expect("a preset loads");
/// let tally = Options::new().inspect(&home)?.replay(&other)?;
/// assert_eq!((tally.same, tally.changed.len()), (0, 1));
/// rt.close()
/// # }
/// ```
pub struct Inspection {
    kernel: Kernel,
    store: Mutex<Box<dyn Store>>,
    /// The delegated tools on record, which nobody offers here.
    pub(crate) providers: Arc<Providers>,
    /// Tools among them that the kernel still lacks, since its own are not those on record.
    pub(crate) absent: ToolsDelta,
}

impl Inspection {
    pub(crate) fn new(
        kernel: Kernel,
        store: Box<dyn Store>,
        providers: Arc<Providers>,
        absent: ToolsDelta,
    ) -> Self {
        Self { kernel, store: Mutex::new(store), providers, absent }
    }

    /// The store that the log was read from, to be read.
    pub(crate) fn store(&self) -> MutexGuard<'_, Box<dyn Store>> {
        // It is only read: a panic leaves nothing half written.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel, as the log leaves it.
    pub const fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// As [`TokenDetail::grant_like`], of a token on record.
    ///
    /// # Errors
    /// [`Error::NoSuch`] where there is no such token; [`Error::Attenuated`].
    pub fn grant_like(&self, token: TokenId) -> Result<Grant, Error> {
        let no = || Error::NoSuch { what: "the token", got: token.to_string() };
        let found = self.tokens_named(&token.to_string(), self.kernel().now()).pop();
        found.ok_or_else(no)?.grant_like()
    }

    /// The states of all agents that have one.
    pub fn states(&self) -> Vec<AgentState> {
        states(&self.kernel)
    }

    /// The verdicts of another policy on every call of the log that one has decided.
    ///
    /// # Errors
    /// As [`Options::open`](crate::Options::open).
    pub fn replay(&self, against: &dyn PolicyEngine) -> Result<Tally, Error> {
        let mut store = self.store();
        let mut tally = Tally::default();
        self.kernel.replay(&mut **store, against, &mut |redecided| tally.add(redecided))?;
        Ok(tally)
    }
}
