//! The kernel's state: a fold over the log. Only [`apply`] changes it.

pub(crate) mod agents;
pub(crate) mod apply;
pub(crate) mod facts;
pub(crate) mod fold;
pub(crate) mod idempotency;
mod image;
pub(crate) mod rates;
pub(crate) mod sessions;
