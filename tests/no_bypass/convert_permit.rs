//! expect: E0277
//! Converts a permit for one plan into one for another.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(permit: Permit<'_, MinePlan>) -> Permit<'_, FsWritePlan> {
    permit.into() //~
}

fn main() {
    drop(attack(any()));
}
