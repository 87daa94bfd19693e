//! The trust file: what a verifier must know of a home from elsewhere than its log.

pub use syscap_kernel::control::Trust;

/// The usual name of the file.
pub const TRUST_FILE: &str = "trust.cbor";
