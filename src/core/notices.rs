//! Asks that somebody is to be told of.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use syscap_format::id::Seq;

/// Most asks that wait to be told; of more only the number is.
const QUEUE_MAX: usize = 64;
/// Most asks that one run is told of.
const TOLD_MAX: usize = 16;

/// What is to be told.
#[derive(Default)]
pub(crate) struct Notices(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    asks: VecDeque<Seq>,
    /// Those that found no room.
    more: u64,
    /// Whether a thread sees to it.
    running: bool,
}

impl Notices {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Every change is one step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Whoever was to see to it does not.
    pub(crate) fn nobody_sees_to_it(&self) {
        self.queue().running = false;
    }

    /// What is to be told next; who finds nothing sees to it no more.
    pub(crate) fn next(&self) -> Option<(Vec<Seq>, u64)> {
        let mut queue = self.queue();
        let some = queue.asks.len().min(TOLD_MAX);
        let asks: Vec<Seq> = queue.asks.drain(..some).collect();
        queue.running = !asks.is_empty();
        // Those in the queue are told by themselves.
        let more = if queue.asks.is_empty() { std::mem::take(&mut queue.more) } else { 0 };
        queue.running.then_some((asks, more))
    }
}
