//! Asks that somebody is to be told of.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use syscap_format::Seq;

/// Most asks that wait to be told; of more only the number is.
const QUEUE_MAX: usize = 64;
/// Most asks that one run is told of.
const TOLD_MAX: usize = 16;

/// The queue of notifications.
#[derive(Default)]
pub(crate) struct Notices {
    queue: Mutex<Queue>,
    /// Rung where nobody sees to it any more, and where the home closes.
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    asks: VecDeque<Seq>,
    /// The number of notifications that found no room.
    more: u64,
    /// True if a thread delivers them.
    running: bool,
    closing: Closing,
}

/// How far the home's end has come.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Closing {
    #[default]
    No,
    /// The rest is delivered without pauses.
    Soon,
    /// The running program is killed.
    Now,
}

impl Notices {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Every change is one step.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an ask there; `true` where nobody sees to it yet.
    pub(crate) fn put(&self, ask: Seq) -> bool {
        let mut queue = self.queue();
        if queue.asks.len() < QUEUE_MAX {
            queue.asks.push_back(ask);
        } else {
            queue.more = queue.more.saturating_add(1);
        }
        !std::mem::replace(&mut queue.running, true)
    }

    /// Records that the thread which was to deliver them does not.
    pub(crate) fn mark_undelivered(&self) {
        self.queue().running = false;
        self.changed.notify_all();
    }

    /// The next notifications; a thread that gets none stops delivering.
    pub(crate) fn next(&self) -> Option<(Vec<Seq>, u64)> {
        let mut queue = self.queue();
        let some = queue.asks.len().min(TOLD_MAX);
        let asks: Vec<Seq> = queue.asks.drain(..some).collect();
        queue.running = !asks.is_empty() && queue.closing != Closing::Now;
        // Those in the queue are told by themselves.
        let more = if queue.asks.is_empty() { std::mem::take(&mut queue.more) } else { 0 };
        if !queue.running {
            self.changed.notify_all();
            return None;
        }
        Some((asks, more))
    }

    /// Lets some time pass, unless the home closes.
    pub(crate) fn pause(&self, time: Duration) {
        self.until(time, |queue| queue.closing != Closing::No);
    }

    /// True if the running program is to be killed.
    pub(crate) fn is_over(&self) -> bool {
        self.queue().closing == Closing::Now
    }

    /// The home closes: what is left to tell is told, in so much time; what runs then is killed.
    pub(crate) fn finish(&self, time: Duration) {
        for (closing, time) in [(Closing::Soon, time), (Closing::Now, time)] {
            if !self.queue().running {
                return;
            }
            self.queue().closing = closing;
            self.changed.notify_all();
            self.until(time, |queue| !queue.running);
        }
    }

    fn until(&self, time: Duration, so: impl Fn(&Queue) -> bool) {
        let queue = self.queue();
        // Whether it has come to that or not is not asked.
        drop(self.changed.wait_timeout_while(queue, time, |queue| !so(queue)));
    }
}
