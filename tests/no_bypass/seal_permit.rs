//! expect: E0624
//! Makes a permit by the kernel's own private constructor.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn main() {
    drop(Permit::<MinePlan>::seal(any())); //~
    drop(ReadPermit::<PeekPlan>::seal(any())); //~
}
