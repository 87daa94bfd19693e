//! expect: E0423
//! Says where a link leads without having looked.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::kernel::Found;

fn attack(ticket: Ticket) -> Event {
    Event::Resolved(ticket, Ok(Found(String::from("shared/secret")))) //~
}

fn main() {
    drop(attack(any()));
}
