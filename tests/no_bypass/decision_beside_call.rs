//! expect: E0061
//! Hands in an approval beside the call.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(kernel: &mut Kernel, submit: Submit, now: Reading) {
    let yes = Decision::plain(Verdict::Allow);
    kernel.handle(Event::Submit(submit, yes), now); //~
}

fn main() {
    attack(any(), any(), any());
}
