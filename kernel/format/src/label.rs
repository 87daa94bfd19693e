//! Labels: whose word a result is, and who may see it.

use core::fmt;

use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder};
use crate::field::{Field, code};

code! {
    /// The integrity of data: its author.
    pub enum Integrity {
        /// The user's, the operator's, or of a source that they vouch for.
        Trusted = 0 "trusted",
        /// A stranger's: it may hold what somebody wants an agent to do.
        Untrusted = 1 "untrusted",
    }
}

code! {
    /// The confidentiality of data: its readers.
    pub enum Confidentiality {
        /// Anybody.
        Public = 0 "public",
        /// The organisation.
        Internal = 1 "internal",
        /// Whom it concerns.
        Private = 2 "private",
        /// Few of those.
        Sensitive = 3 "sensitive",
        /// Only named readers.
        Secret = 4 "secret",
    }
}

/// Integrity, confidentiality and categories: bits that the operator gives a meaning.
///
/// The label of data made from several things is the [`Label::join`] of their labels: it is trusted
/// only if all are, as confidential as the most confidential, and has all their categories. The
/// default is trusted, public, of no category: it adds nothing to what it is joined with.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    integrity: Integrity,
    confidentiality: Confidentiality,
    categories: u32,
}

/// The position of the categories in the encoded number.
const CATEGORIES_SHIFT: u32 = 8;

impl Label {
    /// Trusted and public.
    pub const PUBLIC: Self = Self {
        integrity: Integrity::Trusted,
        confidentiality: Confidentiality::Public,
        categories: 0,
    };

    /// A stranger's word, for anybody.
    pub const UNTRUSTED: Self = Self { integrity: Integrity::Untrusted, ..Self::PUBLIC };

    /// A label of both levels, without a category.
    pub const fn new(integrity: Integrity, confidentiality: Confidentiality) -> Self {
        Self { integrity, confidentiality, categories: 0 }
    }

    /// Adds these categories.
    pub const fn with_categories(mut self, categories: u32) -> Self {
        self.categories |= categories;
        self
    }

    /// The integrity.
    pub const fn integrity(self) -> Integrity {
        self.integrity
    }

    /// The confidentiality.
    pub const fn confidentiality(self) -> Confidentiality {
        self.confidentiality
    }

    /// Its categories, as bits.
    pub const fn categories(self) -> u32 {
        self.categories
    }

    /// True if it marks untrusted content.
    #[must_use]
    pub const fn is_untrusted(self) -> bool {
        matches!(self.integrity, Integrity::Untrusted)
    }

    /// True if the other covers this label.
    #[must_use]
    pub fn leq(self, other: Self) -> bool {
        self.join(other) == other
    }

    /// The label of what is made from both.
    pub fn join(self, other: Self) -> Self {
        Self {
            integrity: self.integrity.max(other.integrity),
            confidentiality: self.confidentiality.max(other.confidentiality),
            categories: self.categories | other.categories,
        }
    }

    /// The label of a result that is given to another session than the one that made the call: its
    /// outcome's, and its intent's, since the arguments may come from what that session had been
    /// given before.
    pub fn delivered(intent: Self, outcome: Self) -> Self {
        intent.join(outcome)
    }
}

impl Default for Label {
    fn default() -> Self {
        Self::PUBLIC
    }
}

impl Field for Label {
    const SHAPE: &'static str = "uint Label";

    fn put(&self, encoder: &mut Encoder) {
        let low = self.integrity.code() | (self.confidentiality.code() << 1);
        encoder.uint(low | (u64::from(self.categories) << CATEGORIES_SHIFT));
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(DecodeFault::Value);
        let number = decoder.uint()?;
        let categories = u32::try_from(number >> CATEGORIES_SHIFT).map_err(|_| fault)?;
        let low = number & 0xff;
        let integrity = Integrity::from_code(low & 1).ok_or(fault)?;
        let confidentiality = Confidentiality::from_code(low >> 1).ok_or(fault)?;
        Ok(Self { integrity, confidentiality, categories })
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.integrity.name(), self.confidentiality.name())?;
        if self.categories != 0 {
            write!(f, " {:#x}", self.categories)?;
        }
        Ok(())
    }
}
