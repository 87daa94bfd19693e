//! The kernel's state: a fold over the log. Nothing else changes it.

pub(crate) mod agents;
pub(crate) mod apply;
pub(crate) mod asks;
pub(crate) mod believe;
mod charge;
pub(crate) mod credits;
pub(crate) mod fold;
mod image;
pub(crate) mod keys;
pub(crate) mod rates;
mod revoke;
pub(crate) mod sessions;
pub(crate) mod sets;
pub(crate) mod signers;
pub(crate) mod tokens;
