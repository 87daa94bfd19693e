//! expect: E0596
//! Brings an event before the runtime's kernel by way of a look.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(runtime: &Runtime, submit: Submit, now: Reading) {
    runtime.look(|kernel| kernel.handle(Event::Submit(submit), now)); //~
}

fn main() {
    attack(any(), any(), any());
}
