//! expect: E0382
//! Runs two plans with one permit.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(first: MinePlan, second: MinePlan, permit: Permit<'_, MinePlan>) -> [Ran; 2] {
    let first = first.run(permit);
    let second = second.run(permit); //~
    [first, second]
}

fn main() {
    drop(attack(any(), any(), any()));
}
