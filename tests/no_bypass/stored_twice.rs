//! expect: E0382
//! Tells two kernels of one commit.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(a: &mut Kernel, b: &mut Kernel, stored: Stored, now: Reading) {
    a.handle(Event::Stored(stored), now);
    b.handle(Event::Stored(stored), now); //~
}

fn main() {
    attack(any(), any(), any(), any());
}
