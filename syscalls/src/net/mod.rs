//! What leaves the machine.

pub mod address;
