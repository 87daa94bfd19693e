//! Finite sets of text.

use alloc::{sync::Arc, vec::Vec};
use core::fmt;

use super::{ScopeError, parts::Parts, shown::Shown};
use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder};

/// Text of 1 to [`Name::BYTES_MAX`] bytes: a route, a purpose, an HTTP method, a key of the
/// arguments. Names are compared byte by byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Longest name, in bytes: names are chosen by people, not data.
    pub const BYTES_MAX: usize = 256;

    /// Checks the length.
    ///
    /// # Errors
    /// [`ScopeError::NameLength`].
    pub fn new(text: &str) -> Result<Self, ScopeError> {
        let fine = (1..=Self::BYTES_MAX).contains(&text.len());
        if fine { Ok(Self(Arc::from(text))) } else { Err(ScopeError::NameLength) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    /// Escaped and cut.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Shown(&self.0), f)
    }
}

/// A finite set of names, sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names(Vec<Name>);

impl Names {
    /// Most names in a set: a list that grows beyond belongs to policy.
    pub const COUNT_MAX: usize = 1024;

    /// The set of `names`.
    ///
    /// # Errors
    /// [`ScopeError::Empty`] or [`ScopeError::TooMany`].
    pub fn new<I>(names: I) -> Result<Self, ScopeError>
    where
        I: IntoIterator<Item = Name>,
    {
        Self::from_parts(names.into_iter().collect())
    }

    /// The names, in ascending order.
    pub fn as_slice(&self) -> &[Name] {
        &self.0
    }

    /// True if the set contains `name`.
    #[must_use]
    pub fn permits(&self, name: &Name) -> bool {
        self.0.binary_search(name).is_ok()
    }

    pub(super) fn leq(&self, other: &Self) -> bool {
        self.0.iter().all(|name| other.permits(name))
    }

    pub(super) fn meet(&self, other: &Self) -> Option<Self> {
        Self::unlimited(self.0.iter().filter(|name| other.permits(name)).cloned().collect())
    }
}

impl Parts for Names {
    type Part = Name;
    const PARTS_MAX: usize = Self::COUNT_MAX;

    fn normalise(mut names: Vec<Name>) -> Vec<Name> {
        names.sort();
        names.dedup();
        names
    }

    fn from_normal(names: Vec<Name>) -> Self {
        Self(names)
    }

    fn parts(&self) -> &[Name] {
        &self.0
    }

    fn write(name: &Name, encoder: &mut Encoder) {
        encoder.text(&name.0);
    }

    fn read(decoder: &mut Decoder<'_>) -> Result<Name, DecodeError> {
        let refused = decoder.fault(DecodeFault::Value);
        Name::new(decoder.text()?).map_err(|_| refused)
    }
}
