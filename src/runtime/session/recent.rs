//! The results that a session was given lately.

use crate::Error;
use crate::inspect::artifact::{Artifact, Cut, Walk, Which};
use crate::runtime::failover::Side;
use crate::runtime::session::Session;
use crate::transport::client::Step;
use syscap_kernel::Next;

impl Session {
    /// The newest results that were delivered to this session, the newest first, at most
    /// [`LAST_MAX`](crate::artifact::LAST_MAX). Its label holds theirs already.
    ///
    /// # Errors
    /// [`Error::NotHolder`] where another process holds the home; [`Error::Halted`] where the
    /// store can't be read.
    pub fn artifacts(&self, last: usize) -> Result<Vec<Artifact>, Error> {
        self.with(|term, session| match &term.side {
            Side::Here(held) => Step::Done(self.held(held, session).artifacts(last)),
            Side::There(_) => Step::Done(Err(Error::NotHolder)),
        })
    }
}

impl crate::server::LocalSession {
    fn artifacts(&self, last: usize) -> Result<Vec<Artifact>, Error> {
        let session = Some(self.number());
        let which = Which { agent: None, session, last, cut: Cut::default() };
        let mut walk = Walk::new(self.core().look(|kernel| kernel.head().seq), which);
        // Others commit in between.
        while self.core().read(|store| Ok(walk.step(store)?))? == Next::More {}
        Ok(walk.found.artifacts)
    }
}
