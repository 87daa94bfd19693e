//! Canonical CBOR: the one byte form of everything that is hashed or signed.
//!
//! The profile lies within RFC 8949 section 4.2.1 (core deterministic encoding) and is
//! narrower. Refused are: bytes after the item; integers and lengths that are not in their
//! shortest form; indefinite lengths; tags; simple values other than `false`, `true` and
//! `null`; integers outside [-2^63, 2^64-1]; map keys that are neither unsigned integers nor
//! text, that mix the two, that repeat or that are not in ascending order of their encoded
//! bytes; text that is not UTF-8; nesting deeper than the profile's limit; lengths beyond the
//! input. Floats are refused by [`Profile::CONTROL`]; [`Profile::DATA`] takes them in their
//! shortest form only, and never NaN or an infinity. Text is never normalised.
//!
//! Decoding *is* the check: there is no second pass, and nothing is encoded again to be
//! compared. `docs/spec/cbor.md` draws the bytes.

mod decode;
mod encode;
mod fault;
mod item;

pub use decode::Decoder;
pub use encode::{Encoder, MapBuilder};
pub(crate) use encode::{head, length};
pub use fault::{DecodeError, DecodeFault};
pub use item::{Canonical, Item, ItemKind};

/// Which values a canonical item may hold, and how deep it may nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    depth_max: u8,
    floats: Floats,
}

/// Decides if a profile accepts floating point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Floats {
    Refused,
    Shortest,
}

impl Profile {
    /// Tokens, records, manifests and other control documents: depth 16, no floats.
    pub const CONTROL: Self = Self { depth_max: 16, floats: Floats::Refused };
    /// Envelopes, arguments and results: depth 64, floats in shortest form.
    pub const DATA: Self = Self { depth_max: 64, floats: Floats::Shortest };
    /// Messages between processes, in which data stands: depth 80, floats in shortest form. An item
    /// that is taken out of one is within [`Profile::DATA`].
    pub const MESSAGE: Self = Self { depth_max: 80, floats: Floats::Shortest };

    /// How many arrays and maps may enclose one another.
    pub const fn depth_max(self) -> u8 {
        self.depth_max
    }
}
