//! The common parts of the network tools.

use std::sync::Arc;

use super::{lookup::Lookup, secret::Secrets};

/// The user agent of requests, if no other is set.
pub(super) const USER_AGENT: &str = concat!("syscap/", env!("CARGO_PKG_VERSION"));

/// The network as tools have it: who looks names up, and who keeps secrets.
#[derive(Clone)]
pub struct Network {
    pub(super) lookup: Arc<dyn Lookup>,
    pub(super) secrets: Arc<dyn Secrets>,
}

impl Network {
    /// The parts with this resolver and these secrets.
    pub fn new(lookup: Arc<dyn Lookup>, secrets: Arc<dyn Secrets>) -> Self {
        Self { lookup, secrets }
    }
}
