//! Programs that are started confined: their bounds, their ends, their ways out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "tests"
)]

mod bounds;
mod common;
mod confined;
mod door;
mod escapes;
mod hidden;
mod input;
