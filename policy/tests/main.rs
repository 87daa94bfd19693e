//! The engine: what a document means, that the fast one agrees, what is refused.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "tests"
)]

mod attributes;
mod conformance;
mod document;
mod engine;
mod malformed;
mod properties;
mod random;
mod written;
