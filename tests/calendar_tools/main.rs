//! `calendar.find`: what is in a range, what recurs, and what hostile files can't do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../seen/records.rs"]
mod records;
#[path = "../seen/verdict.rs"]
mod verdict;

mod hostile;
mod oracle;
mod scope;
mod series;
mod split;
mod world;
