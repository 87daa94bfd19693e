//! expect: E0382
//! Follows the links of a call again, once it was told where they lead.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::kernel::Resolving;

fn attack(kernel: &mut Kernel, ticket: Ticket, links: Resolving, now: Reading) {
    kernel.handle(Event::Resolved(ticket, links.run()), now);
    kernel.handle(Event::Resolved(ticket, links.run()), now); //~
}

fn main() {
    assert!(attack as usize != 0);
}
