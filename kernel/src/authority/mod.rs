//! Who may do what, and how much of it: tokens and what ends them, budgets, credits, the operator's
//! signed orders.

mod budget;
mod control;
pub(crate) mod credits;
mod proofs;
pub(crate) mod revocation;
pub(crate) mod signatures;
pub(crate) mod signers;
pub(crate) mod tokens;
mod tools;
