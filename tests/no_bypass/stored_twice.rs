//! expect: E0382
//! Tells two kernels of one commit.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(one: &mut Kernel, other: &mut Kernel, stored: Stored, now: Reading) {
    one.handle(Event::Stored(stored), now);
    other.handle(Event::Stored(stored), now); //~
}

fn main() {
    attack(any(), any(), any(), any());
}
