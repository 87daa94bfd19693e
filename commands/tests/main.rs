//! What shell commands would do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::duplicate_mod,
    clippy::too_many_lines,
    reason = "tests"
)]

mod bounds;
mod differential;
mod doubts;
mod git;
mod listed;
mod loops;
mod said;
mod timed;
mod turned;
mod variables;
