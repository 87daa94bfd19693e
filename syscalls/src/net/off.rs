//! The network of a build without the feature `http`: it makes no tool.

use std::convert::Infallible;

use syscap_format::{Manifest, ToolId};
use syscap_kernel::Registry;

/// Makes no tool.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network;

/// Nothing is made, so nothing fails.
pub type NetworkError = Infallible;

impl Network {
    /// Of no manifest.
    #[must_use]
    pub const fn makes(_: &Manifest) -> bool {
        false
    }

    /// Of no tool.
    pub const fn unset(_: &ToolId) -> Option<Manifest> {
        None
    }

    /// Adds nothing: it [makes](Self::makes) none.
    pub const fn add(&self, _: &Manifest, _: &mut Registry) -> Result<(), NetworkError> {
        Ok(())
    }
}
