//! How long a home is used.

use std::sync::Arc;

use crate::runtime::failover::Failover;

/// A home that this process uses, until nothing of it needs it any more.
pub(crate) struct Open(pub(super) Arc<Failover>);

impl std::ops::Deref for Open {
    type Target = Failover;

    fn deref(&self) -> &Failover {
        &self.0
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // Whoever wants to know what comes of it closes it.
        drop(self.0.close());
    }
}
