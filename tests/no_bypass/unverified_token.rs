//! expect: E0624
//! Reads a token by the door that checks no signature.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn main() {
    drop(Token::read_trusted(any())); //~
}
