//! Conditions as flat code over numbers.

use alloc::boxed::Box;

use syscap_format::{Host, Verdict};

use super::{number::number, outers::Outers};
use crate::document::{Ask, Attribute, Effect};

/// One constraint.
pub(super) struct Rule {
    /// Its place in the document.
    pub(super) place: u16,
    pub(super) effect: Effect,
    /// The verdict where it matches.
    pub(super) verdict: Verdict,
    /// A test without which it does not hold, asked before all else: most end there.
    pub(super) gate: Option<Test>,
    /// The range of the code of the other parts, which must all hold as well.
    pub(super) start: u32,
    pub(super) end: u32,
}

/// A test of a slot.
#[derive(Clone, Copy)]
pub(super) struct Test {
    pub(super) slot: u32,
    pub(super) ask: Asked,
}

/// A step of a condition. A part stands behind what joins it, which knows where its last ends.
#[derive(Clone, Copy)]
pub(super) enum Op {
    All { end: u32 },
    Any { end: u32 },
    Not,
    Test(Test),
}

/// A question to a slot. Numbers stand for constants: of text and hosts their place among the
/// slot's, of integers twice that and one, so that what lies between two has a number as well. The
/// paths within a path stand directly behind it among the slot's paths, so these are a range.
#[derive(Clone, Copy)]
pub(super) enum Asked {
    Text {
        text: u32,
        host: u32,
    },
    Int(u32),
    Bool(bool),
    In(u32),
    Exists,
    Missing,
    Below(u32),
    AtMost(u32),
    Above(u32),
    AtLeast(u32),
    Within {
        start: u32,
        end: u32,
    },
    /// A test that no number decides: the value itself is compared, as the document's meaning has
    /// it.
    Look(u32),
}

/// An attribute that the group's conditions ask about, and the constants it is compared with,
/// sorted.
pub(super) struct Slot {
    pub(super) attribute: Attribute,
    pub(super) texts: Box<[Box<str>]>,
    pub(super) hosts: Box<[Host]>,
    pub(super) ints: Box<[i128]>,
    pub(super) outers: Outers,
}

/// The constants of an `in`, as numbers, sorted.
#[derive(Default)]
pub(super) struct Set {
    pub(super) texts: Box<[u32]>,
    pub(super) hosts: Box<[u32]>,
    pub(super) ints: Box<[u32]>,
    /// True if there is any text: hosts may be fewer.
    pub(super) has_text: bool,
    pub(super) bools: [bool; 2],
}

/// The constants that tests name by number, beside those of slots.
pub(super) struct Constants {
    pub(super) sets: Box<[Set]>,
    /// The tests of values whose numbers don't decide them.
    pub(super) asks: Box<[Ask]>,
}

impl Slot {
    /// The number of an integer: odd for a constant, even for what lies between two.
    pub(super) fn int(&self, n: i128) -> u32 {
        let (place, odd) = match self.ints.binary_search(&n) {
            Ok(place) => (place, 1),
            Err(place) => (place, 0),
        };
        number(place).saturating_mul(2).saturating_add(odd)
    }
}
