//! Limits of what has no thread of its own, runs above all: one thread looks after all of them, and
//! sees to it that one that outlasts its own is given up.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::driver::pool;

/// How soon it is tried again where no thread was to be had.
const AGAIN: Duration = Duration::from_millis(20);

type GiveUp = Box<dyn FnOnce() + Send>;

static WATCH: Watch = Watch { state: Mutex::new(State::new()), changed: Condvar::new() };

struct Watch {
    state: Mutex<State>,
    /// Rung where something is to be seen to before the thread would wake.
    changed: Condvar,
}

struct State {
    /// True if the thread exists.
    runs: bool,
    /// When it wakes; `None` where nothing is out that it knows of.
    wakes: Option<Instant>,
    last: u64,
    /// For each run in flight, its deadline and the action at that.
    out: BTreeMap<u64, (Instant, GiveUp)>,
}

impl State {
    const fn new() -> Self {
        Self { runs: false, wakes: None, last: 0, out: BTreeMap::new() }
    }

    /// The thread looks again at that moment, or before.
    fn wakes_by(&mut self, until: Instant) {
        if self.wakes.is_none_or(|wakes| until < wakes) {
            self.wakes = Some(until);
            WATCH.changed.notify_one();
        }
    }

    /// The next that is over, and else when that is to be looked for again.
    fn over(&mut self, now: Instant) -> Result<(u64, GiveUp), Option<Instant>> {
        let first = self.out.iter().min_by_key(|(_, (until, _))| *until);
        let first = first.map(|(number, (until, _))| (*number, *until));
        match first.filter(|(_, until)| *until <= now) {
            Some((number, until)) => {
                let (_, give_up) = self.out.remove(&number).ok_or(Some(until))?;
                Ok((number, give_up))
            }
            None => Err(first.map(|(_, until)| until)),
        }
    }
}

/// A run, or whatever else, that has a limit.
pub(crate) struct Limited(u64);

/// Begins to look after a run. `give_up` is called, on a thread of its own, unless it has
/// [ended](Limited::ends) before. `None` where no thread can be had: then somebody else must.
pub(crate) fn limit(after: Duration, give_up: impl FnOnce() + Send + 'static) -> Option<Limited> {
    let until = Instant::now().checked_add(after)?;
    let mut state = WATCH.state();
    if !state.runs {
        let thread = thread::Builder::new().name("syscap-limits".to_owned());
        thread.spawn(|| WATCH.look_after()).ok()?;
        state.runs = true;
    }
    state.last = state.last.wrapping_add(1);
    let number = state.last;
    state.out.insert(number, (until, Box::new(give_up)));
    state.wakes_by(until);
    Some(Limited(number))
}

/// This one is given up at another moment, if it has not been yet. `until` is asked for it while
/// the table is locked, so that of two that move it at once the later says where it stays.
pub(crate) fn move_to(number: u64, until: impl FnOnce() -> Option<Instant>) {
    let mut state = WATCH.state();
    let Some(place) = state.out.get_mut(&number) else { return };
    if let Some(until) = until() {
        place.0 = until;
        state.wakes_by(until);
    }
}

impl Limited {
    /// Its number, for [`move_to`].
    pub(crate) const fn number(&self) -> u64 {
        self.0
    }

    /// It has ended; whether that was before it was given up.
    pub(crate) fn ends(self) -> bool {
        let mut state = WATCH.state();
        let give_up = state.out.remove(&self.0);
        drop(state);
        give_up.is_some()
    }
}

impl Watch {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_after(&self) {
        let mut state = self.state();
        loop {
            let now = Instant::now();
            let next = match state.over(now) {
                Ok((number, give_up)) => {
                    Self::hand_over(&mut state, now, number, give_up);
                    continue;
                }
                Err(next) => next,
            };
            state.wakes = next;
            state = match next {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(next) => {
                    let left = next.saturating_duration_since(now);
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Gives one up on a thread of its own. If no thread is available the run stays in flight.
    fn hand_over(state: &mut State, now: Instant, number: u64, give_up: GiveUp) {
        let held = Arc::new(Mutex::new(Some(give_up)));
        let take = |held: &Mutex<Option<GiveUp>>| {
            held.lock().unwrap_or_else(PoisonError::into_inner).take()
        };
        let theirs = Arc::clone(&held);
        let started = pool::spawn(move || {
            let give_up = theirs.lock().unwrap_or_else(PoisonError::into_inner).take();
            give_up.into_iter().for_each(|give_up| give_up());
        });
        if started.is_err()
            && let Some(give_up) = take(&held)
        {
            let again = now.checked_add(AGAIN).unwrap_or(now);
            state.out.insert(number, (again, give_up));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Each is given up by its own time, one that has ended never, in whatever order they came.
    #[test]
    fn ended_call_is_not_timed_out() {
        let (given_up, told) = channel();
        let limited = |ms| {
            let given_up = given_up.clone();
            let told = move || given_up.send(ms).unwrap();
            (ms, limit(Duration::from_millis(ms), told).unwrap())
        };
        let (late, _, soon) = (limited(60_000), limited(60_000), limited(20));
        let ended = limited(40);
        assert!(ended.1.ends());
        assert_eq!(told.recv_timeout(Duration::from_secs(20)).unwrap(), 20);
        assert!(!soon.1.ends());
        assert!(late.1.ends());
        let last = limited(10);
        assert_eq!(told.recv_timeout(Duration::from_secs(20)).unwrap(), 10);
        assert!(!last.1.ends());
        assert!(told.recv_timeout(Duration::from_millis(100)).is_err());
    }
}
