//! expect: unused_must_use
//! Lets a permit fall, as a statement: its intent stays open.
#![deny(unused_must_use)]
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(given: fn() -> Permit<'static, MinePlan>) {
    given(); //~
}

fn main() {
    attack(any());
}
