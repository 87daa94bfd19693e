//! expect: unused_must_use
//! Lets a proof of storage fall, as a statement: what waits for it waits for ever.
#![deny(unused_must_use)]
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(given: fn() -> Stored) {
    given(); //~
}

fn main() {
    attack(any());
}
