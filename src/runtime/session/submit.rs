//! Sending a call without waiting for its answer.

use std::sync::Arc;

use syscap_format::{Seq, ToolResult};

use crate::Error;
use crate::runtime::backend::{Backend, Step, Told};
use crate::runtime::held::apart;
use crate::runtime::session::Session;
use crate::runtime::session::call::Sent;
use crate::tools::provide::Cancel;

impl Session {
    /// Makes a call, and does not wait.
    pub(super) fn submit(
        &self,
        sent: Sent,
        done: impl FnOnce(Result<ToolResult, Error>) + Send + 'static,
    ) {
        // What holds the home stays until it is answered.
        let own = self.by(self.source);
        let Some((up, session)) = self.now() else { return own.wait_apart(sent, done) };
        // The kernel of this process turns nothing away for another.
        let again = up.held().is_none().then(|| sent.clone());
        let told = move |step| match (step, again) {
            (Step::Done(answer), _) => done(answer),
            // Nothing has run: a thread waits for the next one.
            (Step::Again, Some(again)) => own.wait_apart(again, done),
            (Step::Again, None) => done(Err(Error::HolderGone)),
        };
        up.submit(self.place_at(session), sent, Box::new(told));
    }

    /// Sends it from a thread that waits.
    fn wait_apart(self, sent: Sent, done: impl FnOnce(Result<ToolResult, Error>) + Send + 'static) {
        let told: Told = Box::new(move |step| match step {
            Step::Done(answer) => done(answer),
            Step::Again => done(Err(Error::HolderGone)),
        });
        apart(told, move |told| told(Step::Done(self.make(sent, &Cancel::new()))));
    }

    /// Who holds the home, and the session's number there, where it is open and that can be told at
    /// once.
    fn now(&self) -> Option<(Arc<dyn Backend>, Seq)> {
        let up = self.home.now()?;
        let place = self.place.try_lock().ok()?;
        let session = place.with(&up).filter(|_| !place.closed)?;
        Some((up, session))
    }
}
