//! expect: E0308
//! Swaps the policy engine without a signature.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(kernel: &mut Kernel, ticket: Ticket, now: Reading) {
    kernel.handle(Event::Policy(ticket, (), Box::new(syscap::policy::WithinToken)), now); //~
}

fn main() {
    attack(any(), any(), any());
}
