//! expect: E0594
//! Changes what a checked token says.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(token: &mut Token) {
    token.body().depth_max = u64::MAX; //~
    token.body().expires = UnixMillis::new(u64::MAX); //~
}

fn main() {
    attack(any());
}
