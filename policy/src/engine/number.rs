//! Numbers that stand for constants, and places in lists.

/// Number of a constant that the attribute is equal to never.
pub(super) const NONE: u32 = u32::MAX;

/// A place as a number. A document has far fewer constants than there are numbers.
pub(super) fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(NONE)
}

pub(super) fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
