//! expect: unused_must_use
//! Lets a failed commit fall, as a statement: the kernel does not halt.
#![deny(unused_must_use)]
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(given: fn() -> Result<Stored, syscap::kernel::Halt>) {
    given(); //~
}

fn main() {
    attack(any());
}
