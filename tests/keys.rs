//! Keys: their files, who is asked, how others come in their place, and what a thief keeps.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "keys/files.rs"]
mod files;
#[path = "keys/offers.rs"]
mod offers;
#[path = "keys/rotation.rs"]
mod rotation;
#[path = "keys/sealed.rs"]
mod sealed;
#[path = "keys/stolen.rs"]
mod stolen;
#[path = "keys/world.rs"]
mod world;
