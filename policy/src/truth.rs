//! Three-valued truth.

/// The truth of a condition, after Kleene: `Unknown` where it can't be said.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Truth {
    /// It does not hold.
    False,
    /// It can't be said.
    Unknown,
    /// It holds.
    True,
}

impl Truth {
    /// The truth of a known fact.
    pub const fn of(known: bool) -> Self {
        if known { Self::True } else { Self::False }
    }

    /// Both hold.
    pub fn and(self, other: Self) -> Self {
        self.min(other)
    }

    /// One of them holds.
    pub fn or(self, other: Self) -> Self {
        self.max(other)
    }

    /// It does not hold.
    pub const fn negate(self) -> Self {
        match self {
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
            Self::True => Self::False,
        }
    }

    /// The truth of several things at once: their common truth, else unknown.
    pub fn agree(self, other: Self) -> Self {
        if self == other { self } else { Self::Unknown }
    }
}
