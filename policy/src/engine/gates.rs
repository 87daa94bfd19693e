//! From what a call is to the rules whose gate it meets, however many others there are.

use alloc::{boxed::Box, vec::Vec};
use core::ops::Range;

use super::code::{Asked, Rule, Slot, Test};
use super::number::{NONE, number, place};
use super::view::Key;

/// Rules whose gates ask one slot alike, each about one constant.
pub(super) struct Gates {
    pub(super) slot: u32,
    kind: Kind,
    /// Places of all of them.
    pub(super) rules: Range<usize>,
    /// The starts of each constant's gates, and the end of the last.
    starts: Box<[u32]>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Is it this text?
    Text,
    /// Does it lie within this?
    Within,
}

/// A gate that is found by number: its slot, what it asks, and the constant's number.
fn found(gate: Option<Test>) -> Option<(u32, Kind, u32)> {
    let Test { slot, ask } = gate?;
    match ask {
        Asked::Text { text, .. } => Some((slot, Kind::Text, text)),
        // What lies within stands behind it, so the range begins with itself.
        Asked::Within { start, .. } => Some((slot, Kind::Within, start)),
        _ => None,
    }
}

/// Sorts rules by their gates: those that are found by number last. Within a gate their order
/// stays.
pub(super) fn sort(rules: &mut [Rule], slots: &[Slot]) -> Box<[Gates]> {
    rules.sort_by_key(|rule| found(rule.gate));
    let rules = &*rules;
    let mut all: Vec<Gates> = Vec::new();
    let mut start = rules.partition_point(|rule| found(rule.gate).is_none());
    while let Some((slot, kind, _)) = rules.get(start).and_then(|rule| found(rule.gate)) {
        let among = |rule: &Rule| found(rule.gate).filter(|(s, k, _)| (*s, *k) == (slot, kind));
        let rest = rules.get(start..).unwrap_or_default();
        let end = start.saturating_add(rest.partition_point(|rule| among(rule).is_some()));
        let count = slots.get(place(slot)).map_or(0, |slot| match kind {
            Kind::Text => slot.texts.len(),
            Kind::Within => slot.outers.len(),
        });
        let of = |constant: u32| {
            let before = |rule: &Rule| among(rule).is_some_and(|(.., n)| n < constant);
            number(start.saturating_add(rest.partition_point(before)))
        };
        let starts = (0..=number(count)).map(of).collect();
        all.push(Gates { slot, kind, rules: start..end, starts });
        start = end;
    }
    all.into_boxed_slice()
}

impl Gates {
    /// The constant whose gates a value meets first; `None` where its number does not say it.
    #[inline]
    pub(super) fn first(&self, key: Key) -> Option<u32> {
        match self.kind {
            Kind::Text => key.text(),
            Kind::Within => key.outer(),
        }
    }

    /// The constant whose gates it meets after those of another.
    #[inline]
    pub(super) fn next(&self, constant: u32, slot: &Slot) -> u32 {
        match self.kind {
            Kind::Text => NONE,
            Kind::Within => slot.outers.parent(constant),
        }
    }

    /// The rules whose gate is about a constant; `None` where it is none.
    #[inline]
    pub(super) fn of(&self, constant: u32) -> Option<Range<usize>> {
        match self.starts.get(place(constant)..)? {
            [start, end, ..] => Some(place(*start)..place(*end)),
            _ => None,
        }
    }
}
