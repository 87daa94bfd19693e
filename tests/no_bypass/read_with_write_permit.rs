//! expect: E0308
//! Runs a reading plan with a permit of the other kind.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(plan: PeekPlan, permit: Permit<'_, PeekPlan>) -> Ran<'_> {
    plan.run(permit) //~
}

fn main() {
    drop(attack(any(), any()));
}
