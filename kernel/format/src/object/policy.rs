//! The policy as an object.

use alloc::{boxed::Box, vec::Vec};

use crate::cbor::DecodeError;
use crate::field::{decode, encode, shape};
use crate::hash::Domain;
use crate::id::PolicyHash;

shape! {
    /// Which engine decides.
    pub struct EngineIdentity {
        /// Its name.
        1 => pub name: Box<str>,
        /// The version of its semantics.
        2 => pub version: u64,
    }
}

shape! {
    /// The object that a policy hash names.
    pub struct PolicyObject {
        /// Which engine decides.
        1 => pub engine: EngineIdentity,
        /// Its canonical document.
        2 => pub document: Vec<u8>,
    }
}

impl PolicyObject {
    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the canonical bytes.
    ///
    /// # Errors
    /// The first fault.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        decode(bytes)
    }

    /// The policy's hash.
    pub fn hash(&self) -> PolicyHash {
        PolicyHash::from_bytes(Domain::POLICY.hash(&[&self.to_bytes()]))
    }
}
