//! The host's clocks and randomness. The kernel itself has neither.

use crate::time::Reading;

/// The host's clocks.
pub trait Clock: Send + Sync {
    /// One look at both.
    fn read(&self) -> Reading;
}

/// The host has no randomness to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no randomness can be had")]
pub struct NoEntropy;

/// The host's randomness.
pub trait Entropy: Send + Sync {
    /// Fills the buffer with random bytes.
    ///
    /// # Errors
    /// [`NoEntropy`]: the caller must not go on.
    fn fill(&self, buffer: &mut [u8]) -> Result<(), NoEntropy>;
}
