//! The verifier: what it says of sound logs, and of logs that were changed or forged.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "tests"
)]

mod forge;
mod given;
mod kernel;
mod kin;
mod room;
mod tamper;
