//! The time of a run, without the time in which a person was asked on its behalf.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Most time that is not counted, of one run, however often a person is asked.
pub(crate) const PAUSES_MAX: Duration = Duration::from_secs(600);

type Moved = Box<dyn Fn(&Clock) + Send + Sync>;

pub(crate) struct Clock {
    began: Instant,
    limit: Duration,
    pauses: Mutex<Pauses>,
    /// Called after the end of the run's time was moved, with nothing locked.
    moved: OnceLock<Moved>,
}

struct Pauses {
    /// How many are open: the time that two of them share is taken off once.
    open: usize,
    /// When the first of those that are open began.
    since: Instant,
    /// The sum of those that have ended.
    ended: Duration,
}

impl Clock {
    /// Starts the clock of a run that may take so long.
    pub(crate) fn start(limit: Duration) -> Self {
        let began = Instant::now();
        let pauses = Pauses { open: 0, since: began, ended: Duration::ZERO };
        Self { began, limit, pauses: Mutex::new(pauses), moved: OnceLock::new() }
    }

    /// How long the run may take.
    pub(crate) const fn limit(&self) -> Duration {
        self.limit
    }

    /// Has this called when the end of its time has moved. Only the first counts.
    pub(crate) fn when_moved(&self, moved: impl Fn(&Self) + Send + Sync + 'static) {
        drop(self.moved.set(Box::new(moved)));
    }

    /// When its time is over, as far as is known: while a person is asked, the latest moment
    /// possible. `None` where that is farther away than a clock goes.
    pub(crate) fn until(&self) -> Option<Instant> {
        let pauses = self.pauses();
        let pause = if pauses.open == 0 { pauses.ended } else { PAUSES_MAX };
        drop(pauses);
        self.began.checked_add(self.limit)?.checked_add(pause)
    }

    /// The sum of the pauses so far.
    pub(crate) fn paused(&self) -> Duration {
        let pauses = self.pauses();
        if pauses.open == 0 { pauses.ended } else { pauses.with_open() }
    }

    /// How long the run has taken, without pauses.
    pub(crate) fn elapsed(&self) -> Duration {
        let paused = self.paused();
        self.began.elapsed().saturating_sub(paused)
    }

    /// A person is asked until the pause is dropped.
    pub(crate) fn pause(self: &Arc<Self>) -> Pause {
        let mut pauses = self.pauses();
        if pauses.open == 0 {
            pauses.since = Instant::now();
        }
        pauses.open = pauses.open.saturating_add(1);
        drop(pauses);
        self.has_moved();
        Pause(Arc::clone(self))
    }

    fn has_moved(&self) {
        if let Some(moved) = self.moved.get() {
            moved(self);
        }
    }

    fn pauses(&self) -> MutexGuard<'_, Pauses> {
        // Every change leaves it whole.
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pauses {
    fn with_open(&self) -> Duration {
        self.ended.saturating_add(self.since.elapsed()).min(PAUSES_MAX)
    }
}

/// A person is asked.
pub(crate) struct Pause(Arc<Clock>);

impl Drop for Pause {
    fn drop(&mut self) {
        let mut pauses = self.0.pauses();
        pauses.open = pauses.open.saturating_sub(1);
        if pauses.open == 0 {
            pauses.ended = pauses.with_open();
        }
        drop(pauses);
        self.0.has_moved();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::sleep;

    use super::*;

    const STEP: Duration = Duration::from_millis(30);

    /// Two questions at once stop the time once, and it goes on when both are answered.
    #[test]
    fn pauses_are_taken_off_once() {
        let clock = Arc::new(Clock::start(STEP));
        let moves = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&moves);
        clock.when_moved(move |_| {
            seen.fetch_add(1, Ordering::SeqCst);
        });
        let end = clock.until().unwrap();
        let (began, before) = (Instant::now(), clock.elapsed());
        let one = clock.pause();
        sleep(STEP);
        let two = clock.pause();
        sleep(STEP);
        drop(one);
        assert_eq!(clock.until().unwrap(), end + PAUSES_MAX, "one is still open");
        sleep(STEP);
        drop(two);
        let paused = began.elapsed();
        let moved = clock.until().unwrap() - end;
        assert!(moved >= 3 * STEP && moved <= paused, "{moved:?} of {paused:?}");
        assert!(clock.elapsed() - before <= began.elapsed() - moved);
        assert_eq!(moves.load(Ordering::SeqCst), 4);
    }

    /// However often a person is asked, no more than so much is taken off.
    #[test]
    fn pauses_have_a_bound() {
        let clock = Arc::new(Clock::start(STEP));
        let end = clock.until().unwrap();
        clock.pauses().ended = PAUSES_MAX - Duration::from_millis(1);
        let pause = clock.pause();
        sleep(STEP);
        drop(pause);
        assert_eq!(clock.until().unwrap(), end + PAUSES_MAX);
    }
}
