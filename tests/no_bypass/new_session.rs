//! expect: E0624
//! Makes a session by the face's private constructor.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn main() {
    drop(Session::at(any(), any(), any(), any())); //~
}
