//! expect: E0277
//! Copies what must be used once.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn cloned<T: Clone>() {}

fn main() {
    cloned::<Permit<'_, MinePlan>>(); //~
    cloned::<ReadPermit<'_, PeekPlan>>(); //~
    cloned::<Ran>(); //~
    cloned::<Job>(); //~
    cloned::<Batch>(); //~
    cloned::<Stored>(); //~
    cloned::<Effect>(); //~
    cloned::<Kernel>(); //~
    cloned::<Registry>(); //~
    cloned::<Session>(); //~
}
