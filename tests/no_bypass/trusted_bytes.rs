//! expect: E0624
//! Passes bytes off as canonical by the kernel's own door.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn main() {
    drop(Item::trusted(&[0xff]).kind()); //~
}
