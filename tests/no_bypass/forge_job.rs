//! expect: E0451
//! Seals a plan and a permit together, as only the kernel does.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack() -> Job {
    Job {
        plan: loop {},     //~
        permit: loop {},   //~
        wall_ms_max: None, //~
    }
}

fn main() {
    drop(attack());
}
