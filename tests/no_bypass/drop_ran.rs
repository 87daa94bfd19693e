//! expect: unused_must_use
//! Lets a report fall, as a statement: its call is not settled.
#![deny(unused_must_use)]
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(given: fn() -> Ran<'static>) {
    given(); //~
}

fn main() {
    attack(any());
}
