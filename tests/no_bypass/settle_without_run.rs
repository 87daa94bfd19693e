//! expect: E0308
//! Reports a run by the position of its intent alone.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(kernel: &mut Kernel, intent: Seq, now: Reading) {
    kernel.handle(Event::Ran(intent, any()), now); //~
}

fn main() {
    attack(any(), any(), any());
}
