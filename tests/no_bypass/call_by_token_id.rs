//! expect: E0599
//! Calls a tool by a token's id, which is a name and no authority.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(token: TokenId) {
    drop(token.call("fs.read", syscap::args! { "path": "a.txt" })); //~
}

fn main() {
    attack(any());
}
