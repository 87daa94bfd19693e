//! expect: E0038
//! Forgets a plan's type, so that any permit would do.
#[path = "support/mod.rs"]
mod support;
use support::*;

//~
fn attack(plan: Box<dyn Plan>) {
    drop(plan); //~
}

fn main() {}
