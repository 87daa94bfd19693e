//! expect: E0616
//! Raises what a permit has set aside.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(mut permit: Permit<'_, MinePlan>) -> Ran<'_> {
    permit.core.hold = Amounts::ZERO.with(Dimension::DiskWriteBytes, u64::MAX); //~
    permit.ok(done(), TxOutcome::Committed)
}

fn main() {
    drop(attack(any()));
}
