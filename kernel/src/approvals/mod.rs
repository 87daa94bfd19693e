//! Calls that wait for a person: asked, answered, and let through once or within what was approved.

pub(crate) mod answers;
pub(crate) mod conditions;
mod consume;
pub(crate) mod index;
pub(crate) mod people;
pub(crate) mod record;
pub(crate) mod request;
pub(crate) mod sets;
