//! expect: E0594
//! Changes what a registered token says, by way of a look.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(runtime: &Runtime, id: &TokenId) {
    runtime.look(|kernel| {
        if let Some(view) = kernel.token(id) {
            view.body.expires = UnixMillis::new(u64::MAX); //~
        }
    });
}

fn main() {
    attack(any(), any());
}
