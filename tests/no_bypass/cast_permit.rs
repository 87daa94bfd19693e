//! expect: E0605
//! Casts a permit for one plan into one for another.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(permit: Permit<'_, MinePlan>) -> Permit<'_, FsWritePlan> {
    permit as Permit<'_, FsWritePlan> //~
}

fn main() {
    drop(attack(any()));
}
