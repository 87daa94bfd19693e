//! expect: E0599
//! Hands in an approval as an event.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(kernel: &mut Kernel, ticket: Ticket, now: Reading) {
    let yes = Decision::plain(Verdict::Allow);
    kernel.handle(Event::Decided(ticket, yes), now); //~
}

fn main() {
    attack(any(), any(), any());
}
