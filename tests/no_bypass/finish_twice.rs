//! expect: E0382
//! Gives one permit back twice.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(permit: Permit<'_, MinePlan>) -> [Ran; 2] {
    let first = permit.ok(done(), TxOutcome::Committed);
    let second = permit.ok(done(), TxOutcome::NoOp); //~
    [first, second]
}

fn main() {
    drop(attack(any()));
}
