//! expect: E0382
//! Runs one plan twice, with two permits.
#[path = "support/mod.rs"]
mod support;
use support::*;

type Leave = Permit<'static, MinePlan>;

fn attack(plan: MinePlan, first: Leave, second: Leave) -> [Ran<'static>; 2] {
    let first = plan.run(first);
    let second = plan.run(second); //~
    [first, second]
}

fn main() {
    drop(attack(any(), any(), any()));
}
