//! A wake-up for threads that wait for something.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Rung where something has changed.
#[derive(Default)]
pub(crate) struct Bell {
    rung: Mutex<u64>,
    heard: Condvar,
}

impl Bell {
    pub(crate) fn ring(&self) {
        let mut rung = self.rung();
        *rung = rung.wrapping_add(1);
        self.heard.notify_all();
    }

    /// How often it was rung: to be asked before what is waited for is looked at.
    pub(crate) fn count(&self) -> u64 {
        *self.rung()
    }

    /// Waits until it is rung once more than that, or so long; how often it was rung by then.
    pub(crate) fn wait(&self, since: u64, limit: Duration) -> u64 {
        let heard = self.heard.wait_timeout_while(self.rung(), limit, |rung| *rung == since);
        *heard.unwrap_or_else(PoisonError::into_inner).0
    }

    fn rung(&self) -> MutexGuard<'_, u64> {
        // Every change is one step.
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
