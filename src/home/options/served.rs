//! A home that is opened to be served, or is served already.

use std::path::Path;
use std::thread;
use std::time::Instant;

use syscap_kernel::{StoreError, object_of};

use crate::home::options::Options;
use crate::server::Holding;
use crate::server::uses::Until;
use crate::transport::limits::{TRY_PAUSE, TRY_TIME};
use crate::{Error, Runtime};

/// The runtime of a home that this process holds, with what no other program has or without.
pub(super) fn served(
    holding: Holding,
    until: Option<Until>,
    has_own: bool,
) -> Result<Runtime, Error> {
    if has_own && let Err(error) = holding.home().note_program() {
        // The log ends properly, and why it ends is what is said.
        drop(holding.end());
        return Err(error);
    }
    Runtime::holding(holding, until)
}

impl Options {
    /// As [`Options::open`], once whoever has the home for a moment, as a command or a server that ends, has let go
    /// of it; `None` where another process serves it.
    ///
    /// # Errors
    /// As [`Options::open`], and as [`Connect::open`](crate::Connect::open) of another server.
    pub fn open_unless_served(
        mut self,
        folder: impl AsRef<Path>,
    ) -> Result<Option<Runtime>, Error> {
        let (until, has_own, since) = (self.until, self.has_own(), Instant::now());
        loop {
            match self.hold(folder.as_ref()) {
                Ok(holding) => return served(holding, until, has_own).map(Some),
                Err(Error::Home(StoreError::Locked)) => {}
                Err(error) => return Err(error),
            }
            match Runtime::connect(folder.as_ref()) {
                Ok(_) => return Ok(None),
                Err(Error::NoServer { .. }) if since.elapsed() <= TRY_TIME => {
                    thread::sleep(TRY_PAUSE);
                }
                Err(Error::NoServer { .. }) => return Err(StoreError::Locked.into()),
                Err(error) => return Err(error),
            }
        }
    }

    /// True if it brings what no other program can have.
    pub(super) fn has_own(&self) -> bool {
        let engine = self.engine.as_deref();
        let is_known = |engine| syscap_policy::engine(&object_of(engine)).is_some();
        let has_own = !self.tools.is_empty() || self.signer.is_some() || self.store.is_some();
        #[cfg(feature = "http")]
        let has_own = has_own || self.secrets.is_some();
        has_own || !engine.is_none_or(|engine| is_known(engine))
    }
}
