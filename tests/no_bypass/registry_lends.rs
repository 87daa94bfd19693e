//! expect: E0624
//! Asks a registry for a tool that was given to it.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(registry: &Registry, tool: &ToolId) {
    drop(registry.find(tool).is_some()); //~
}

fn main() {
    attack(any(), any());
}
