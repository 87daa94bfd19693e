//! The hook's own deadline: a client that gives it up takes that for no objection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{process, thread};

use crate::exit::{Exit, diagnose};

/// A watchdog: it ends this process when that takes too long.
pub(super) struct Watch(Arc<AtomicBool>);

impl Watch {
    /// Begins. When it ends this process, that is a no, until [`Watch::is_after`].
    pub(super) fn start(limit: Duration) -> Result<Self, String> {
        let after = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&after);
        let started = thread::Builder::new().name("syscap-watch".to_owned()).spawn(move || {
            thread::sleep(limit);
            let late = format!("no answer within {} s", limit.as_secs());
            let exit = match theirs.load(Ordering::SeqCst) {
                true => {
                    diagnose(&format!("what a use came to could not be recorded: {late}"));
                    Exit::Failed
                }
                false => {
                    diagnose(&format!("{late}, so this use is denied"));
                    Exit::Blocked
                }
            };
            process::exit(exit.code().into())
        });
        started.map_err(|error| format!("no deadline can be set: {error}"))?;
        Ok(Self(after))
    }

    /// The use has been made: nothing is left that could be denied.
    pub(super) fn is_after(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
