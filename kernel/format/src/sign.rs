//! Ed25519: strict verification only, and keys that have one encoding.
//!
//! `verify_strict` of ed25519-dalek 3 refuses small-order keys and points and any `S` that is
//! not below the group's order; batch verification, which answers otherwise for some inputs, is
//! never used. [`self_test`] runs at start, because a feature switched on anywhere in the
//! dependency graph (`legacy_compatibility`) would weaken the check silently.

use alloc::vec::Vec;
use core::fmt;

use ed25519_dalek::{Signature as DalekSignature, VerifyingKey};

/// A public key in its one canonical encoding, not of small order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

/// An Ed25519 signature, not yet verified.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; 64]);

/// Why a key or a signature was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The bytes encode no point, or not canonically.
    #[error("the public key is not a canonically encoded point")]
    Encoding,
    /// The key has small order: signatures by it prove nothing.
    #[error("the public key has small order")]
    Weak,
    /// The signature does not verify.
    #[error("the signature does not verify")]
    Mismatch,
    /// The library accepts what it must refuse, or refuses what it must accept.
    #[error("the signature library fails its known-answer test")]
    SelfTest,
}

impl PublicKey {
    /// Checks a key that is about to be registered.
    ///
    /// # Errors
    /// [`SignatureError::Encoding`] or [`SignatureError::Weak`].
    pub fn new(bytes: [u8; 32]) -> Result<Self, SignatureError> {
        // Two encodings of one point would be two names of one key.
        if !is_reduced(&bytes) {
            return Err(SignatureError::Encoding);
        }
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| SignatureError::Encoding)?;
        if key.is_weak() { Err(SignatureError::Weak) } else { Ok(Self(bytes)) }
    }

    /// The encoded key.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Verifies `signature` over `context || message`.
    ///
    /// # Errors
    /// [`SignatureError`] where it does not verify strictly.
    pub fn verify(
        &self,
        context: &[u8],
        message: &[u8],
        signature: &Signature,
    ) -> Result<(), SignatureError> {
        let key = VerifyingKey::from_bytes(&self.0).map_err(|_| SignatureError::Encoding)?;
        let signature = DalekSignature::from_bytes(&signature.0);
        key.verify_strict(&preimage(context, message), &signature)
            .map_err(|_| SignatureError::Mismatch)
    }
}

/// True if the coordinate y, all but the last bit, is below the field's prime 2^255 - 19 (RFC 8032
/// section 5.1.3). The last bit is the sign of x: it can be a second name only where x is 0, and
/// both such points have small order.
fn is_reduced(bytes: &[u8; 32]) -> bool {
    let [lowest, middle @ .., highest] = bytes;
    *lowest < 0xed || *highest & 0x7f != 0x7f || middle.iter().any(|byte| *byte != 0xff)
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Signature {
    /// Takes the 64 bytes as they are.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    /// The 64 bytes.
    pub const fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The signed bytes: a context that ends in a zero byte, then the message.
#[must_use]
pub fn preimage(context: &[u8], message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(context.len().saturating_add(message.len()));
    bytes.extend_from_slice(context);
    bytes.extend_from_slice(message);
    bytes
}

/// Checks that the library accepts a good signature and refuses the same one with the group's
/// order added to `S`, a changed message, and a key of small order.
///
/// # Errors
/// [`SignatureError::SelfTest`].
pub fn self_test() -> Result<(), SignatureError> {
    let failed = |_| SignatureError::SelfTest;
    let key = PublicKey::new(KNOWN_KEY).map_err(failed)?;
    let good = Signature(KNOWN_SIGNATURE);
    key.verify(b"", KNOWN_MESSAGE, &good).map_err(failed)?;
    let malleable = Signature(with_order_added(KNOWN_SIGNATURE));
    let refused = [
        key.verify(b"", KNOWN_MESSAGE, &malleable).is_err(),
        key.verify(b"x", KNOWN_MESSAGE, &good).is_err(),
        PublicKey::new(SMALL_ORDER_KEY).is_err(),
    ];
    if refused == [true; 3] { Ok(()) } else { Err(SignatureError::SelfTest) }
}

fn with_order_added(signature: [u8; 64]) -> [u8; 64] {
    let mut changed = signature;
    let mut carry = 0_u16;
    for (byte, order) in changed.iter_mut().skip(32).zip(GROUP_ORDER) {
        let sum = u16::from(*byte).saturating_add(u16::from(order)).saturating_add(carry);
        let [low, high] = sum.to_le_bytes();
        *byte = low;
        carry = u16::from(high);
    }
    changed
}

/// 2^252 + 27742317777372353535851937790883648493, little-endian (RFC 8032 section 5.1).
const GROUP_ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];
/// The neutral element: order 1.
const SMALL_ORDER_KEY: [u8; 32] = [
    1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];
const KNOWN_MESSAGE: &[u8] = b"syscap known answer";
const KNOWN_KEY: [u8; 32] = [
    0xea, 0x4a, 0x6c, 0x63, 0xe2, 0x9c, 0x52, 0x0a, 0xbe, 0xf5, 0x50, 0x7b, 0x13, 0x2e, 0xc5, 0xf9,
    0x95, 0x47, 0x76, 0xae, 0xbe, 0xbe, 0x7b, 0x92, 0x42, 0x1e, 0xea, 0x69, 0x14, 0x46, 0xd2, 0x2c,
];
const KNOWN_SIGNATURE: [u8; 64] = [
    0x18, 0x2e, 0x18, 0x4f, 0x82, 0xc5, 0xb0, 0x96, 0xca, 0x73, 0xf4, 0xa3, 0x5e, 0x32, 0x5e, 0x6c,
    0x19, 0x19, 0xe3, 0x1c, 0x1a, 0x87, 0x1c, 0x39, 0x86, 0x16, 0xd0, 0xbc, 0x0b, 0x31, 0x34, 0x14,
    0x27, 0x25, 0xe8, 0x60, 0x3e, 0xc0, 0x3c, 0x05, 0x51, 0x65, 0x8f, 0x0b, 0xfe, 0xb3, 0x2f, 0xac,
    0x7f, 0xf2, 0xa7, 0x2f, 0x67, 0x09, 0xfb, 0x1c, 0xa7, 0x4d, 0xc5, 0xb3, 0xa6, 0xa4, 0x95, 0x0c,
];
