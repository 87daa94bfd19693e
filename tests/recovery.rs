//! What becomes of a call that a crash broke off: what its tool can prove, what an operator says,
//! and what a repeat of its key is told.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of the simulator")]

#[path = "recovery/hosts.rs"]
mod hosts;
#[path = "recovery/killed.rs"]
mod killed;
#[path = "recovery/probes.rs"]
mod probes;
#[path = "recovery/renewals.rs"]
mod renewals;
#[path = "seen/records.rs"]
mod seen;
mod sim;
