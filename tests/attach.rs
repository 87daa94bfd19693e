//! One home, many processes: who holds it, who is attached, and what becomes of either.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "attach/bounds.rs"]
mod bounds;
#[path = "attach/frames.rs"]
mod frames;
#[path = "attach/holders.rs"]
mod holders;
#[path = "attach/lanes.rs"]
mod lanes;
#[path = "attach/operators.rs"]
mod operators;
#[path = "attach/providers.rs"]
mod providers;
#[path = "seen/records.rs"]
mod records;
#[path = "attach/share.rs"]
mod share;
#[path = "attach/sockets.rs"]
mod sockets;
#[path = "attach/turns.rs"]
mod turns;
#[path = "seen/verdict.rs"]
mod verdict;
#[path = "attach/wire.rs"]
mod wire;
#[path = "attach/world.rs"]
mod world;
