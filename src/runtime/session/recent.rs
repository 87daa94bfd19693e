//! The results that a session was given lately.

use crate::Error;
use crate::inspect::artifact::{Artifact, Cut, Walk, Which};
use crate::runtime::session::{Seated, Session};
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
        self.with(|_, seated| match seated {
            Seated::Here(session) => Step::Done(session.artifacts(last)),
            Seated::There(_) => Step::Done(Err(Error::NotHolder)),
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
