//! expect: ok
//! What must be used can fall inside an `Option`, which the lint does not open.
#![deny(unused_must_use)]
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(kernel: &mut Kernel) {
    kernel.poll_effect();
    kernel.take_batch();
}

fn main() {
    assert!(attack as usize != 0);
}
