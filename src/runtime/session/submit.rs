//! Sending a call without waiting for its answer.

use std::sync::{Arc, Mutex, PoisonError};

use syscap_format::{Reason, Seq, ToolResult};

use crate::Error;
use crate::driver::pool;
use crate::runtime::failover::Side;
use crate::runtime::sent::Sent;
use crate::runtime::session::Session;
use crate::server::LocalSession;
use crate::tools::provide::Cancel;
use crate::transport::Call;
use crate::transport::client::Step;
use crate::transport::limits::SHORT_BYTES_MAX;

impl Session {
    /// Makes a call, and does not wait.
    pub(super) fn submit(
        &self,
        sent: Sent,
        done: impl FnOnce(Result<ToolResult, Error>) + Send + 'static,
    ) {
        let again = self.by(self.source);
        let (holder, session) = match self.now() {
            Some((Side::Here(held), session)) => {
                return again.run_apart(self.held(&held, session), sent, done);
            }
            // A long one may have to wait until it is read.
            Some((Side::There(holder), session)) if sent.envelope.len() <= SHORT_BYTES_MAX => {
                (holder, session)
            }
            _ => return again.wait_apart(sent, done),
        };
        let call = Call { session, sent: sent.clone() };
        holder.call_then(call, move |step| match step {
            // Nothing has run: the holder is ending, or the kernel itself.
            Step::Again => again.wait_apart(sent, done),
            Step::Done(Ok(answer)) if answer.reason() == Some(Reason::Closing) => {
                again.wait_apart(sent, done);
            }
            Step::Done(answer) => done(answer),
        });
    }

    /// Sends it to the kernel of this process from a thread that runs it.
    fn run_apart(
        self,
        here: Arc<LocalSession>,
        sent: Sent,
        done: impl FnOnce(Result<ToolResult, Error>) + Send + 'static,
    ) {
        let done = Arc::new(Mutex::new(Some(done)));
        let theirs = Arc::clone(&done);
        let started = pool::spawn(move || {
            let session = Arc::clone(&here);
            here.send_then(sent, &Cancel::new(), move |answer| {
                session.hold_up(&answer);
                tell(&theirs, answer);
                // What holds the home stays until it is answered.
                drop(self);
            });
        });
        if started.is_err() {
            tell(&done, Err(Error::NotStarted));
        }
    }

    /// Sends it from a thread that waits.
    fn wait_apart(self, sent: Sent, done: impl FnOnce(Result<ToolResult, Error>) + Send + 'static) {
        let done = Arc::new(Mutex::new(Some(done)));
        let theirs = Arc::clone(&done);
        let started = pool::spawn(move || {
            tell(&theirs, self.make(sent, &Cancel::new()));
        });
        if started.is_err() {
            tell(&done, Err(Error::NotStarted));
        }
    }

    /// Who holds the home, and the session's number there, where it is open and that can be told at
    /// once.
    fn now(&self) -> Option<(Side, Seq)> {
        let term = self.home.now()?;
        let place = self.place.try_lock().ok()?;
        match place.at {
            Some((with, session)) if with == term.number && !place.closed => {
                Some((term.side, session))
            }
            _ => None,
        }
    }
}

/// Tells it to who has not been told.
fn tell<F: FnOnce(Result<ToolResult, Error>)>(
    done: &Mutex<Option<F>>,
    answer: Result<ToolResult, Error>,
) {
    let done = done.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(done) = done {
        done(answer);
    }
}
