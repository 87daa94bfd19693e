//! expect: unused_must_use
//! Lets a job fall, as a statement: what is on record does not run.
#![deny(unused_must_use)]
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(given: fn() -> Job) {
    given(); //~
}

fn main() {
    attack(any());
}
