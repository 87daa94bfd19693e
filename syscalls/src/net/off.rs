//! The network of a build without the feature `http`: it makes no tool.

#[path = "names.rs"]
mod names;

use std::convert::Infallible;

use syscap_format::{Manifest, ToolId};
use syscap_kernel::Registry;

pub use self::names::{
    ADDRESS_DIMENSION, HOST_DIMENSION, HTTP_REQUEST, NET_EGRESS, PORT_DIMENSION, PURPOSE_DIMENSION,
    ROUTE_DIMENSION, SCHEME_DIMENSION, URL_PATH_DIMENSION, URL_ROOT,
};

/// Makes no tool.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network;

/// It makes nothing, so it never fails.
pub type NetworkError = Infallible;

impl Network {
    /// It makes no tool.
    #[must_use]
    pub const fn makes(_: &Manifest) -> bool {
        false
    }

    /// It unsets no tool.
    pub const fn unset(_: &ToolId) -> Option<Manifest> {
        None
    }

    /// Adds nothing: it [makes](Self::makes) none.
    pub const fn add(&self, _: &Manifest, _: &mut Registry) -> Result<(), NetworkError> {
        Ok(())
    }
}
