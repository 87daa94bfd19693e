//! Intervals of integers.

use core::fmt;

use super::{ScopeError, parts};
use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder};

/// A closed interval of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ints {
    least: i128,
    greatest: i128,
}

impl Ints {
    /// Least integer of the codec: -2^63.
    pub const MIN: i128 = -0x8000_0000_0000_0000;
    /// Greatest integer of the codec: 2^64-1.
    pub const MAX: i128 = 0xffff_ffff_ffff_ffff;

    /// The integers from `least` to `greatest`, both included.
    ///
    /// # Errors
    /// [`ScopeError::IntRange`], or [`ScopeError::Empty`] where `least` is the greater.
    pub fn new(least: i128, greatest: i128) -> Result<Self, ScopeError> {
        if least < Self::MIN || greatest > Self::MAX {
            return Err(ScopeError::IntRange);
        }
        if least > greatest { Err(ScopeError::Empty) } else { Ok(Self { least, greatest }) }
    }

    /// The least integer.
    pub const fn least(self) -> i128 {
        self.least
    }

    /// The greatest integer.
    pub const fn greatest(self) -> i128 {
        self.greatest
    }

    /// True if `value` lies in the interval.
    #[must_use]
    pub const fn permits(self, value: i128) -> bool {
        self.least <= value && value <= self.greatest
    }

    pub(super) const fn leq(self, other: &Self) -> bool {
        other.least <= self.least && self.greatest <= other.greatest
    }

    pub(super) fn meet(self, other: &Self) -> Option<Self> {
        Self::new(self.least.max(other.least), self.greatest.min(other.greatest)).ok()
    }

    pub(super) fn encode(self, encoder: &mut Encoder) {
        encoder.array(2);
        write(encoder, self.least);
        write(encoder, self.greatest);
    }

    pub(super) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let refused = decoder.fault(DecodeFault::Value);
        parts::fixed(decoder, 2)?;
        Self::new(decoder.int()?, decoder.int()?).map_err(|_| refused)
    }
}

impl fmt::Display for Ints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.least == self.greatest {
            write!(f, "{}", self.least)
        } else {
            write!(f, "{} to {}", self.least, self.greatest)
        }
    }
}

/// The bounds were checked when the interval was made, so one of the two conversions fits.
fn write(encoder: &mut Encoder, value: i128) {
    match u64::try_from(value) {
        Ok(value) => encoder.uint(value),
        Err(_) => encoder.int(i64::try_from(value).unwrap_or(i64::MIN)),
    }
}
