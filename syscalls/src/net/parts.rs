//! What the tools of the network rest on.

use std::sync::Arc;

use super::{lookup::Lookup, secret::Secrets};

/// What requests say of who makes them, where nothing else is set.
pub(super) const USER_AGENT: &str = concat!("syscap/", env!("CARGO_PKG_VERSION"));

/// The network as tools have it: who looks names up, and who keeps secrets.
#[derive(Clone)]
pub struct Network {
    pub(super) lookup: Arc<dyn Lookup>,
    pub(super) secrets: Arc<dyn Secrets>,
}

impl Network {
    /// Of these two.
    pub fn new(lookup: Arc<dyn Lookup>, secrets: Arc<dyn Secrets>) -> Self {
        Self { lookup, secrets }
    }
}
