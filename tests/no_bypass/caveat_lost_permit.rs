//! expect: ok
//! A plan can forget its permit and panic: the kernel hears of it as lost.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn forget(permit: Permit<'_, MinePlan>) -> Ran<'_> {
    core::mem::forget(permit);
    panic!("the host reports the run as lost; it is charged in full")
}

pub fn main() {
    assert!(forget as usize != 0);
}
