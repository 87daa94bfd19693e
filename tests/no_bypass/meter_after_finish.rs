//! expect: E0382
//! Goes on metering with a permit that was given back.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(mut permit: Permit<'_, MinePlan>) -> Ran<'_> {
    let ran = permit.ok(done(), TxOutcome::Committed);
    drop(permit.meter(Dimension::DiskWriteBytes, 1)); //~
    ran
}

fn main() {
    drop(attack(any()));
}
