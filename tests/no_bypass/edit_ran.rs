//! expect: E0616
//! Changes a report: less used, another call answered, another result.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(ran: &mut Ran) {
    ran.used = Amounts::ZERO; //~
    ran.intent = Seq::new(1); //~
    ran.delivered = done(); //~
}

fn main() {
    attack(any());
}
