//! expect: E0624
//! Appends a record to the log by itself.
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
