//! expect: E0624
//! Appends a record of its own to the log.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(kernel: &mut Kernel) {
    drop(kernel.append(any())); //~
    drop(kernel.append_with(any(), any())); //~
}

fn main() {
    attack(any());
}
