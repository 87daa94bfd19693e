//! expect: E0277
//! Requires of the things that must be used once that they can be copied.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn cloned<T: Clone>() {}

fn main() {
    cloned::<Permit<MinePlan>>(); //~
    cloned::<ReadPermit<PeekPlan>>(); //~
    cloned::<Ran>(); //~
    cloned::<Job>(); //~
    cloned::<Batch>(); //~
    cloned::<Stored>(); //~
    cloned::<Kernel>(); //~
    cloned::<Registry>(); //~
    cloned::<Session>(); //~
}
