//! Connecting to the server of a home.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::runtime::Runtime;
use crate::runtime::failover::{Failover, Mode};
use crate::transport::client::Entry;
use crate::transport::{Lane, ReadBy};
use crate::{Error, Home};

/// Starts a server for a home that has none. It returns once that can be connected to, or with the
/// reason why there is none.
#[derive(Clone)]
pub struct Starter(Arc<dyn Fn() -> Result<(), Error> + Send + Sync>);

impl Starter {
    /// One that does this.
    pub fn new(start: impl Fn() -> Result<(), Error> + Send + Sync + 'static) -> Self {
        Self(Arc::new(start))
    }

    pub(crate) fn start(&self) -> Result<(), Error> {
        (self.0)()
    }
}

impl fmt::Debug for Starter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Starter")
    }
}

/// How a process connects to the server of a home, each time that it has to: at first, and when a
/// server has gone. It never serves the home itself.
///
/// ```
/// use syscap::{Connect, prelude::*};
///
/// # fn main() -> Result<(), Error> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// # let home = folder.path().join("home");
/// let server = Runtime::create(&home)?;
/// let client = Connect::to(&home).open()?;
/// let token = client.issue(Grant::to("a").tools(["echo"]))?;
/// assert!(server.view()?.token(token).is_some());
/// # server.close()
/// # }
/// ```
#[must_use]
pub struct Connect {
    home: Home,
    setup: Setup,
}

/// What a process does with each connection, and where there is none.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) stays: bool,
    pub(crate) headless: bool,
    pub(crate) starter: Option<Starter>,
    /// The reader of a server's messages, if that is no thread.
    pub(crate) read_by: Option<ReadBy>,
}

impl Connect {
    /// To the server of the home in a folder.
    pub fn to(folder: impl AsRef<Path>) -> Self {
        Self { home: Home::at(folder), setup: Setup::default() }
    }

    /// The server stays while this process is connected, and ends with the last such one if it
    /// was started [for that](crate::Until::LastOut). Closing waits for that end, 5 seconds at most.
    pub const fn stays(mut self) -> Self {
        self.setup.stays = true;
        self
    }

    /// Nobody is there to be asked: a call of this process that would wait for a person is refused
    /// as [`Asked`](syscap_format::Reason::Asked) at once. Others' calls wait as ever.
    pub const fn headless(mut self) -> Self {
        self.setup.headless = true;
        self
    }

    /// Starts a server where there is none: at the beginning, and each time that a server has gone
    /// without saying so or this process needs one. One that ends before it was found is followed by
    /// another, twice.
    pub fn starting(mut self, starter: Starter) -> Self {
        self.setup.starter = Some(starter);
        self
    }

    /// What comes from the server is read by `by`, and by a thread only where that lets go of it.
    pub fn read_by(mut self, by: ReadBy) -> Self {
        self.setup.read_by = Some(by);
        self
    }

    /// Connects. While a server comes or goes it tries for some seconds.
    ///
    /// # Errors
    /// [`Error::NoServer`] where nobody serves the home, and why none could be started;
    /// [`Error::Version`], [`Error::Foreign`] or [`Error::Full`] where it can't be connected to.
    pub fn open(self) -> Result<Runtime, Error> {
        let (mode, entry) = (Mode::Connect(self.setup), Entry::Lane(Lane::Operator));
        let failover = Failover::new(self.home, mode, entry);
        failover.connect()?;
        Runtime::by(failover)
    }
}
