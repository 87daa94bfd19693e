//! expect: E0277
//! Registers a tool that writes as a built-in read.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(mut registry: Registry, mine: Mine, options: Options, write: FsWrite) {
    drop(registry.add_read(mine)); //~
    drop(options.trusted_read(write)); //~
}

fn main() {
    attack(any(), any(), any(), any());
}
