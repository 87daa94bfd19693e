//! expect: E0061
//! Runs a plan without a permit.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(plan: FsWritePlan) -> Ran<'static> {
    plan.run() //~
}

fn main() {
    drop(attack(any()));
}
