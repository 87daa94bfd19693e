//! What the tools rest on: file access beneath a root, URLs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "tests"
)]

mod beneath;
mod unlimited;
mod urls;
