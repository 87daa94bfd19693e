//! expect: E0521
//! Keeps a permit beyond its run, for another plan of its own type.
#[path = "support/mod.rs"]
mod support;
use support::*;

use std::sync::Mutex;

static KEPT: Mutex<Vec<Permit<'static, MinePlan>>> = Mutex::new(Vec::new());

fn attack(permit: Permit<'_, MinePlan>) {
    KEPT.lock().expect("sound").push(permit); //~
}

fn main() {
    attack(any());
}
