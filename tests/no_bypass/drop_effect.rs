//! expect: unused_must_use
//! Lets an effect fall, as a statement: an answer does not leave.
#![deny(unused_must_use)]
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(given: fn() -> Effect) {
    given(); //~
}

fn main() {
    attack(any());
}
