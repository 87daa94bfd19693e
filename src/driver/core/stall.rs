//! Commits that another program keeps from beginning: one that copies or browses the database may
//! hold a lock of it.
//!
//! Nothing was written then, so the same batch is tried again. Meanwhile no call gets a permit, since
//! its intent is not durable, and an operator's act is refused as `busy`: its record can't be made,
//! and it would not be in force.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use syscap_format::{Reason, Refused};
use syscap_kernel::{Attempt, Batch, Halt, StoreError, Stored};

use crate::driver::core::Core;

/// How long a commit is tried in all: then the kernel halts, and the home is let go.
pub(crate) const STALL_TIME: Duration = Duration::from_secs(60);
/// The first pause between two tries, and the longest; each is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

impl Core {
    /// True while a commit can't begin.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::SeqCst)
    }

    /// Refuses an operator's act while no record can be made of it.
    pub(crate) fn may_act(&self) -> Result<(), Refused> {
        let ready = || self.ask(|store| Ok(store.ready()?));
        match self.is_stalled() || ready() == Err(Halt::Store(StoreError::Busy)) {
            true => Err(Refused::new(Reason::Busy).field("home")),
            // Whatever else is wrong the commit says.
            false => Ok(()),
        }
    }

    /// Commits a batch, as soon as no other program is in the way.
    pub(crate) fn commit_in_time(&self, mut batch: Batch) -> Result<Stored, Halt> {
        let (mut pause, mut since) = (PAUSE, None);
        let stored = loop {
            match self.ask(|store| batch.attempt(store)) {
                Ok(Attempt::Stored(stored)) => break Ok(stored),
                Ok(Attempt::Busy(same)) => batch = same,
                Err(halt) => break Err(halt),
            }
            self.stalled.store(true, Ordering::SeqCst);
            let since: &Instant = since.get_or_insert_with(Instant::now);
            if since.elapsed() >= self.stall_time {
                self.lets_go();
                break Err(Halt::Store(StoreError::Busy));
            }
            thread::sleep(pause);
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
        };
        self.stalled.store(false, Ordering::SeqCst);
        stored
    }

    /// Has this done once, when a commit could not begin for too long: whoever holds the home lets
    /// it go, so that the next one opens it.
    pub(crate) fn when_let_go(&self, then: impl Fn() + Send + Sync + 'static) {
        self.let_go.get_or_init(|| Box::new(then));
    }

    /// True once a commit could not begin for too long.
    pub(crate) fn has_let_go(&self) -> bool {
        self.gave_up.load(Ordering::SeqCst)
    }

    fn lets_go(&self) {
        self.gave_up.store(true, Ordering::SeqCst);
        if let Some(then) = self.let_go.get() {
            then();
        }
    }
}
