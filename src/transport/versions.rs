//! The versions of the protocol.

use std::fmt;

use syscap_format::field::shape;

shape! {
    /// The versions of the protocol that one side speaks: all from the least to the greatest.
    #[derive(Copy)]
    pub struct Versions {
        /// The first of them.
        1 => pub least: u64,
        /// The last of them; not below the first.
        2 => pub greatest: u64,
    }
}

impl Versions {
    /// The versions that this program speaks.
    pub const OURS: Self = Self { least: 8, greatest: 8 };

    /// The greatest version that both sides speak.
    pub fn common(self, other: Self) -> Option<u64> {
        let greatest = self.greatest.min(other.greatest);
        (greatest >= self.least.max(other.least)).then_some(greatest)
    }

    pub(crate) const fn include(self, version: u64) -> bool {
        self.least <= version && version <= self.greatest
    }

    /// True if all of them precede any of the other ones.
    #[must_use]
    pub const fn are_before(self, other: Self) -> bool {
        self.greatest < other.least
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.greatest) {
            (least, greatest) if least == greatest => write!(f, "version {least}"),
            (least, greatest) => write!(f, "versions {least} to {greatest}"),
        }
    }
}
