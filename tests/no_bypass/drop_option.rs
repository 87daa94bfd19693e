//! expect: unused_must_use
//! Lets an effect and a batch fall inside their `Option`.
#![deny(unused_must_use)]
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(kernel: &mut Kernel) {
    kernel.poll_effect(); //~
    kernel.take_batch(); //~
}

fn main() {
    assert!(attack as usize != 0);
}
