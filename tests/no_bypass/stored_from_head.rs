//! expect: E0308
//! Tells the kernel that its head is durable, without the proof.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(kernel: &mut Kernel, now: Reading) {
    let head = kernel.head();
    kernel.handle(Event::Stored(head), now); //~
}

fn main() {
    attack(any(), any());
}
