//! `syscap mcp` between real clients and servers, and between hostile ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "tests"
)]

mod clients;
mod gateway;
