//! expect: E0616
//! Puts an engine, or a decision, in the kernel's place without a signed event.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(kernel: &mut Kernel) {
    kernel.engine = any(); //~
    kernel.shadow = None; //~
    kernel.facts = any(); //~
}

fn main() {
    attack(any());
}
