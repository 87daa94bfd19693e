//! expect: E0599
//! Calls a tool by the runtime, with no session.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(runtime: &Runtime) {
    drop(runtime.call("fs.read", syscap::args! { "path": "a.txt" })); //~
}

fn main() {
    attack(any());
}
