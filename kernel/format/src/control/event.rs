//! A signed order, and what its signature covers.

use alloc::vec::Vec;

use crate::cbor::{DecodeError, Encoder};
use crate::field::{Field, decode, encode, shape};
use crate::id::HomeId;
use crate::limits::ROLE_KEYS_MAX;
use crate::record::head::Head;
use crate::record::kind::RecordKind;
use crate::sign::{PublicKey, Signature, SignatureError};

/// The domain separator of a control event's signature, before the message.
pub const CONTROL_CONTEXT: &[u8] = b"syscap/control/v2\0";

shape! {
    /// One key's signature on a control event.
    pub struct Signed {
        /// Who signed.
        1 => pub key: PublicKey,
        /// Above the key's last one.
        2 => pub counter: u64,
        /// Over [`CONTROL_CONTEXT`] and CBOR [home, head, key, counter, kind, body].
        3 => pub signature: Signature,
    }
}

shape! {
    /// A signed control event as it stands in its record.
    pub struct Control {
        /// The head of the log as the signers saw it: no record up to there can be cut out.
        1 => pub head: Head,
        /// The canonical body, of the kind's form.
        2 => pub body: Vec<u8>,
        /// As many signatures as the role asks for at the least, at most [`ROLE_KEYS_MAX`],
        /// sorted by their keys' bytes, no key twice.
        3 => pub signatures: Vec<Signed>,
    }
}

impl Control {
    /// The message that a key signs.
    pub fn message(
        home: &HomeId,
        head: &Head,
        key: &PublicKey,
        counter: u64,
        kind: RecordKind,
        body: &[u8],
    ) -> Vec<u8> {
        let mut encoder = Encoder::with_capacity(body.len().saturating_add(160));
        encoder.array(6);
        encoder.bytes(home.as_bytes());
        head.put(&mut encoder);
        encoder.bytes(key.as_bytes());
        encoder.uint(counter);
        encoder.uint(kind.code());
        encoder.bytes(body);
        encoder.into_bytes()
    }

    /// An event with the signature of one key.
    pub fn by_one(head: Head, body: Vec<u8>, signed: Signed) -> Self {
        Self { head, body, signatures: [signed].into() }
    }

    /// The canonical bytes, as they stand in a record.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads an event as it stands in its record.
    ///
    /// # Errors
    /// The first fault.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        decode::<Self>(bytes)
    }

    /// True if it has at least one signature, not too many, sorted by keys, no key twice.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let signed = &self.signatures;
        let sorted = signed.windows(2).all(|pair| matches!(pair, [a, b] if a.key < b.key));
        sorted && (1..=ROLE_KEYS_MAX).contains(&signed.len())
    }

    /// Verifies every signature, for a home and a kind. The caller checks that the keys have the
    /// role.
    ///
    /// # Errors
    /// [`SignatureError::Mismatch`].
    pub fn verify(&self, home: &HomeId, kind: RecordKind) -> Result<(), SignatureError> {
        self.signatures.iter().try_for_each(|signed| {
            let Signed { key, counter, signature } = signed;
            let message = Self::message(home, &self.head, key, *counter, kind, &self.body);
            key.verify(CONTROL_CONTEXT, &message, signature)
        })
    }
}
