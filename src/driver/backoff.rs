//! Backoff: a caller that is refused repeatedly waits, so that other callers get the processor. A
//! refused call waits for nothing by itself; a call that runs waits for its record.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use syscap_format::{Item, REFUSALS_IN_A_ROW_MAX, Reason, ToolResult};

/// The first wait; each next one is twice as long.
const FIRST: Duration = Duration::from_millis(1);
/// The longest.
const MOST: Duration = Duration::from_millis(50);

/// How often somebody was refused in a row: a session, or a connection by what names none.
#[derive(Default)]
pub(crate) struct Backoff(AtomicU32);

impl Backoff {
    /// Counts an answered call. True if it was refused.
    pub(crate) fn answered(&self, result: &ToolResult) -> bool {
        let kind = || result.delivered().item().get("kind").and_then(Item::as_text);
        self.came_to(result.reason().map(|reason| (reason, kind())))
    }

    fn came_to(&self, error: Option<(Reason, Option<&str>)>) -> bool {
        match error {
            // A person, time or room is waited for: that is nobody's flood.
            Some((Reason::Asked | Reason::Deferred | Reason::Overloaded | Reason::Closing, _)) => {
                false
            }
            // What ran and failed has waited for its records.
            Some((_, Some("refused"))) => {
                self.refused();
                true
            }
            _ => {
                self.0.store(0, Ordering::Relaxed);
                false
            }
        }
    }

    /// Something else was refused.
    pub(crate) fn refused(&self) {
        let one_more = |row: u32| Some(row.saturating_add(1));
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).unwrap_or_default();
    }

    /// Something else was not.
    pub(crate) fn taken(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// How long it waits: nothing for refusals that have a record of their own, then longer with
    /// each.
    fn length(&self) -> Duration {
        match self.0.load(Ordering::Relaxed).checked_sub(REFUSALS_IN_A_ROW_MAX) {
            None | Some(0) => Duration::ZERO,
            Some(past) => {
                let times = 1_u32.checked_shl(past.saturating_sub(1)).unwrap_or(u32::MAX);
                FIRST.saturating_mul(times).min(MOST)
            }
        }
    }

    /// Waits. The caller must hold no lock.
    pub(crate) fn wait(&self) {
        let length = self.length();
        if !length.is_zero() {
            thread::sleep(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_end_with_the_row() {
        let backoff = Backoff::default();
        let mut waits = Vec::new();
        for _ in 0..24 {
            backoff.refused();
            waits.push(backoff.length().as_millis());
        }
        assert_eq!(waits.split_off(16), [1, 2, 4, 8, 16, 32, 50, 50]);
        assert!(waits.iter().all(|wait| *wait == 0), "each has its record");
        (0..100).for_each(|_| backoff.refused());
        assert_eq!(backoff.length(), MOST);
        backoff.taken();
        assert_eq!(backoff.length(), Duration::ZERO);
    }

    #[test]
    fn only_what_is_refused_counts() {
        let backoff = Backoff::default();
        let refused = |reason| Some((reason, Some("refused")));
        for _ in 0..17 {
            assert!(backoff.came_to(refused(Reason::UnknownTool)));
        }
        for (reason, kind) in [
            (Reason::Asked, "asked"),
            (Reason::Deferred, "deferred"),
            (Reason::Overloaded, "refused"),
        ] {
            assert!(!backoff.came_to(Some((reason, Some(kind)))), "{kind}");
            assert_eq!(backoff.length(), FIRST, "the row goes on");
        }
        for ends in [None, Some((Reason::NotFound, Some("failed")))] {
            assert!(backoff.came_to(refused(Reason::UnknownTool)));
            assert!(!backoff.came_to(ends));
            assert_eq!(backoff.length(), Duration::ZERO);
        }
    }
}
