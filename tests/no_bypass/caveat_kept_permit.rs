//! expect: ok
//! A tool can keep a permit beyond its run, for another plan of its own type.
#[path = "support/mod.rs"]
mod support;
use support::*;

use std::sync::Mutex;

static KEPT: Mutex<Vec<Permit<MinePlan>>> = Mutex::new(Vec::new());

fn keep(permit: Permit<MinePlan>) -> Ran {
    KEPT.lock().expect("sound").push(permit);
    panic!("lost, as far as the kernel knows")
}

fn later(plan: MinePlan, permit: Permit<MinePlan>) -> Ran {
    let old = KEPT.lock().expect("sound").pop();
    KEPT.lock().expect("sound").push(permit);
    plan.run(old.expect("kept"))
}

fn main() {
    assert!(keep as usize != later as usize);
}
