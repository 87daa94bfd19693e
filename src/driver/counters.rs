//! Counters of a runtime since it was opened. The log holds none of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use syscap_format::{Item, Reason, ToolResult, field::shape};

shape! {
    /// Counted since the home was opened: what an operator looks at, never what anything is decided
    /// by.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct Counts {
        /// Calls that were answered.
        1 => pub calls: u64,
        /// Calls that gave a result.
        2 => pub allowed: u64,
        /// Calls whose run failed.
        3 => pub failed: u64,
        /// Calls that were answered by the first call of their idempotency key.
        4 => pub repeats: u64,
        /// Refused calls, by reason.
        5 => pub refused: BTreeMap<Reason, u64>,
        /// Connections that were taken.
        6 => pub connections: u64,
        /// Connections at present.
        7 => pub attached: u64,
        /// Connections of other users, which were turned away.
        8 => pub foreign: u64,
        /// Runs of the program that tells of calls which wait, and that ended well in their time.
        9 => pub notified: u64,
        /// Notifications that failed or did not begin.
        10 => pub unnotified: u64,
    }
}

/// The counters of a runtime.
pub(crate) struct Counters {
    allowed: AtomicU64,
    failed: AtomicU64,
    /// Results in which the tool reports a failure.
    told: AtomicU64,
    repeats: AtomicU64,
    /// In the order of [`Reason::ALL`].
    refused: Vec<AtomicU64>,
    connections: AtomicU64,
    ended: AtomicU64,
    foreign: AtomicU64,
    notified: AtomicU64,
    unnotified: AtomicU64,
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            allowed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            told: AtomicU64::new(0),
            repeats: AtomicU64::new(0),
            refused: Reason::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            connections: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            foreign: AtomicU64::new(0),
            notified: AtomicU64::new(0),
            unnotified: AtomicU64::new(0),
        }
    }

    /// A call was answered.
    pub(crate) fn answered(&self, result: &ToolResult) {
        // A result is not read for it: it may be large.
        let kind = || result.delivered().item().get("kind").and_then(Item::as_text);
        let ran = result.reason().is_none() || kind() == Some("failed");
        let reason = match result.reason() {
            // What ran has an intent, but for an answer that was given before.
            _ if ran && result.receipt().intent.is_none() => return add(&self.repeats),
            None => return add(&self.allowed),
            Some(_) if ran => return add(&self.failed),
            Some(reason) => reason,
        };
        let place = Reason::ALL.binary_search(&reason);
        if let Some(counter) = place.ok().and_then(|place| self.refused.get(place)) {
            add(counter);
        }
    }

    /// A tool says of itself that it failed; what it brought is answered, and counted, after this.
    pub(crate) fn tool_failed(&self) {
        add(&self.told);
    }

    /// A connection was taken.
    pub(crate) fn connected(&self) {
        add(&self.connections);
    }

    /// A connection that was taken has ended.
    pub(crate) fn disconnected(&self) {
        add(&self.ended);
    }

    /// A connection of another user was turned away.
    pub(crate) fn foreign(&self) {
        add(&self.foreign);
    }

    /// Somebody was told of a call that waits, or was not.
    pub(crate) fn notified(&self, told: bool) {
        add(if told { &self.notified } else { &self.unnotified });
    }

    pub(crate) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let refused = Reason::ALL.iter().zip(&self.refused);
        let refused: BTreeMap<Reason, u64> = refused
            .map(|(reason, counter)| (*reason, read(counter)))
            .filter(|(_, count)| *count > 0)
            .collect();
        let (allowed, failed, repeats) =
            (read(&self.allowed), read(&self.failed), read(&self.repeats));
        // It counts among what failed, and once.
        let told = read(&self.told).min(allowed);
        let (allowed, failed) = (allowed.saturating_sub(told), failed.saturating_add(told));
        // In this order: what has ended was taken before.
        let ended = read(&self.ended);
        let connections = read(&self.connections);
        let calls = refused
            .values()
            .chain([&allowed, &failed, &repeats])
            .fold(0, |sum: u64, count| sum.saturating_add(*count));
        Counts {
            calls,
            allowed,
            failed,
            repeats,
            refused,
            connections,
            attached: connections.saturating_sub(ended),
            foreign: read(&self.foreign),
            notified: read(&self.notified),
            unnotified: read(&self.unnotified),
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
