//! `syscap run`: what an agent behind the boundary can do, and what one without it can.
#![cfg(target_os = "linux")]

mod attacks;
mod changes;
mod channel;
mod clients;
mod confined;
mod day;
mod lane;
mod linked;
mod locations;
mod paths;
mod program;
mod servers;
mod shell;
mod tokens;
#[allow(dead_code, reason = "a part of it is used here")]
mod world;
