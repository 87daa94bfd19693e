//! expect: E0423
//! Passes bytes off as canonical that nobody checked.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn main() {
    drop(Canonical(vec![0xff])); //~
    drop(Item(&[0xff]).as_bytes()); //~
}
