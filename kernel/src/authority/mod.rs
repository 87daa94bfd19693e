//! Authority: tokens and their end, budgets, credits, the operator's signed events.

mod budget;
mod control;
pub(crate) mod credits;
mod proofs;
mod redact;
pub(crate) mod revocation;
pub(crate) mod signatures;
pub(crate) mod signers;
pub(crate) mod tokens;
mod tools;
