//! The common parts of the list scopes: normal form, limit and wire.

use alloc::vec::Vec;

use super::ScopeError;
use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder};

/// A scope that is a list of parts in normal form.
pub(super) trait Parts: Sized {
    /// One element.
    type Part: Clone + PartialEq;

    /// How many parts a scope may have.
    const PARTS_MAX: usize;

    /// The shortest list of the same meaning, sorted: equal lists come of equal meanings.
    fn normalise(parts: Vec<Self::Part>) -> Vec<Self::Part>;

    /// Wraps a list that is in normal form and not empty.
    fn from_normal(parts: Vec<Self::Part>) -> Self;

    /// The list.
    fn parts(&self) -> &[Self::Part];

    /// Writes one part.
    fn write(part: &Self::Part, encoder: &mut Encoder);

    fn read(decoder: &mut Decoder<'_>) -> Result<Self::Part, DecodeError>;

    /// The scope of a list in any order, or `None` where it would permit nothing.
    fn unlimited(parts: Vec<Self::Part>) -> Option<Self> {
        let parts = Self::normalise(parts);
        if parts.is_empty() { None } else { Some(Self::from_normal(parts)) }
    }

    /// The scope of a list in any order, its limit checked.
    fn from_parts(parts: Vec<Self::Part>) -> Result<Self, ScopeError> {
        let scope = Self::unlimited(parts).ok_or(ScopeError::Empty)?;
        if scope.parts().len() <= Self::PARTS_MAX { Ok(scope) } else { Err(ScopeError::TooMany) }
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.array(self.parts().len());
        for part in self.parts() {
            Self::write(part, encoder);
        }
    }

    /// Makes the scope of what was read and compares: no second definition of normal form.
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let refused = decoder.fault(DecodeFault::Value);
        let mut parts = Vec::new();
        decoder.each(|decoder| {
            if parts.len() >= Self::PARTS_MAX {
                return Err(refused);
            }
            parts.push(Self::read(decoder)?);
            Ok(())
        })?;
        let scope = Self::unlimited(parts.clone()).ok_or(refused)?;
        if scope.parts() == parts { Ok(scope) } else { Err(refused) }
    }
}

/// The head of an array of exactly `count` items.
pub(super) fn fixed(decoder: &mut Decoder<'_>, count: u64) -> Result<(), DecodeError> {
    let refused = decoder.fault(DecodeFault::Value);
    if decoder.array()? == count { Ok(()) } else { Err(refused) }
}
