//! The trust file: what must be known of a home from elsewhere than its log.

use alloc::vec::Vec;

use super::Roles;
use crate::cbor::{DecodeError, DecodeFault, Decoder, Profile};
use crate::field::{Field, encode, shape};
use crate::id::HomeId;

/// Version of the file's form.
const VERSION: u64 = 2;

shape! {
    /// The home's id and the keys that it began with. Later keys follow from the log.
    pub struct Trust {
        /// Version of this form: 2.
        1 => pub version: u64,
        /// The home.
        2 => pub home: HomeId,
        /// The keys of its genesis record.
        3 => pub roles: Roles,
    }
}

impl Trust {
    /// The data that a verifier must trust.
    pub const fn new(home: HomeId, roles: Roles) -> Self {
        Self { version: VERSION, home, roles }
    }

    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the canonical bytes.
    ///
    /// # Errors
    /// The first fault; another version is one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes, Profile::CONTROL);
        let fault = decoder.fault(DecodeFault::Value);
        let trust = Self::take(&mut decoder)?;
        decoder.finish()?;
        if trust.version == VERSION { Ok(trust) } else { Err(fault) }
    }
}
