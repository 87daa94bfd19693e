//! expect: unused_must_use
//! Lets a batch fall, as a statement: its records are not stored.
#![deny(unused_must_use)]
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(given: fn() -> Batch) {
    given(); //~
}

fn main() {
    attack(any());
}
