//! What leaves the machine.

pub mod address;
pub mod target;
