//! `syscap run`: what an agent behind the boundary can do, and what one without it can.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "run/attacks.rs"]
mod attacks;
#[path = "run/clients.rs"]
mod clients;
#[path = "run/confined.rs"]
mod confined;
#[path = "run/lane.rs"]
mod lane;
#[path = "run/paths.rs"]
mod paths;
#[path = "run/program.rs"]
mod program;
#[allow(dead_code, reason = "a part of it is used here")]
#[path = "cli/support.rs"]
mod support;
#[path = "run/world.rs"]
mod world;
