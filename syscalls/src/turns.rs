//! Names that one run at a time has: a file that is changed, an inbox that is filled.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use syscap_format::{Amounts, Dimension};

/// How long one waits for others at the most: well within the time that a call sets aside, so that
/// nobody's token is used up by those who change one name all the time.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(5);
/// The part of its time that a call keeps for the steps after the wait.
const MARGIN: Duration = Duration::from_millis(100);

/// How long the run of a call waits: as long as one may, or as its own time lasts.
pub(crate) fn wait_of(hold: &Amounts) -> Duration {
    match hold.get(Dimension::WallUs) {
        0 => WAIT_MAX,
        us => Duration::from_micros(us).saturating_sub(MARGIN).min(WAIT_MAX),
    }
}

/// The names that somebody has.
#[derive(Debug)]
pub(crate) struct Turns<K> {
    taken: Mutex<BTreeSet<K>>,
    freed: Condvar,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self { taken: Mutex::default(), freed: Condvar::new() }
    }
}

impl<K: Ord + Clone> Turns<K> {
    /// Waits until nobody has any of these names, and takes them all at once: so nobody waits for
    /// one who waits for it. `None` where that takes too long.
    pub(crate) fn take(self: &Arc<Self>, names: &[K], wait: Duration) -> Option<Vec<Taken<K>>> {
        // Every change is one step.
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_taken = |taken: &mut BTreeSet<K>| names.iter().any(|name| taken.contains(name));
        let waited = self.freed.wait_timeout_while(taken, wait, is_taken);
        let (mut taken, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        taken.extend(names.iter().cloned());
        Some(
            names
                .iter()
                .map(|name| Taken { turns: Arc::clone(self), name: name.clone() })
                .collect(),
        )
    }
}

/// A name that nobody else gets until this is dropped.
pub(crate) struct Taken<K: Ord> {
    turns: Arc<Turns<K>>,
    name: K,
}

impl<K: Ord> Drop for Taken<K> {
    fn drop(&mut self) {
        self.turns.taken.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
        self.turns.freed.notify_all();
    }
}

impl<K: Ord + fmt::Debug> fmt::Debug for Taken<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Taken({:?})", self.name)
    }
}
