//! What becomes of a call that a crash broke off: what its tool can prove, what an operator says,
//! and what a repeat of its key is told.

mod probes;
mod renewals;
mod reports;
