//! expect: E0451
//! Makes a token whose signature nobody checked.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(id: TokenId, body: TokenBody) -> Token {
    Token {
        id,   //~
        body, //~
    }
}

fn main() {
    drop(attack(any(), any()));
}
