//! A clock that a test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use syscap::format::UnixMillis;
use syscap::kernel::{Clock, Reading};

/// A clock that stands still until it is moved; all clones show the same.
#[derive(Clone, Default)]
pub struct Still(Arc<AtomicU64>);

impl Still {
    /// Moves it on.
    pub fn forward(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Still {
    fn read(&self) -> Reading {
        let ms = self.0.load(Ordering::SeqCst);
        Reading { wall: UnixMillis::new(1_790_000_000_000 + ms), boottime_ms: ms }
    }
}
