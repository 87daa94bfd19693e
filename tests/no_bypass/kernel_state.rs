//! expect: E0616
//! Gets at the kernel's state, its engine, its effects and its halt.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(kernel: &mut Kernel) {
    kernel.state.policy = None; //~
    kernel.engine = Box::new(syscap::policy::WithinToken); //~
    kernel.effects.clear(); //~
    kernel.halted = None; //~
}

fn main() {
    attack(any());
}
