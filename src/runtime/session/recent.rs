//! The results that a session was given lately.

use crate::Error;
use crate::inspect::artifact::{Artifact, Cut, Walk, Which};
use crate::runtime::backend::Step;
use crate::runtime::session::Session;
use syscap_kernel::Next;

impl Session {
    /// The newest results that were delivered to this session, the newest first, at most
    /// [`LAST_MAX`](crate::artifact::LAST_MAX). Its label holds theirs already.
    ///
    /// # Errors
    /// [`Error::NotHolder`] where another process holds the home; [`Error::Halted`] where the
    /// store can't be read.
    pub fn artifacts(&self, last: usize) -> Result<Vec<Artifact>, Error> {
        self.with(|up, at| match up.held() {
            Some(held) => Step::Done(held.session(at).artifacts(last)),
            None => Step::Done(Err(Error::NotHolder)),
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
