//! expect: E0308
//! Swaps the policy engine without a signed event.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(kernel: &mut Kernel, ticket: Ticket, now: Reading) {
    let engine = Box::new(syscap::policy::WithinToken);
    kernel.handle(Event::Policy(ticket, (), None, vec![engine], None), now); //~
}

fn main() {
    attack(any(), any(), any());
}
