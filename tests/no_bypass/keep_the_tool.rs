//! expect: E0382
//! Keeps a tool that a registry has taken.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(mut registry: Registry, tool: Mine, request: &Request<'_>) {
    drop(registry.add(tool));
    drop(tool.plan(request)); //~
}

fn main() {
    attack(any(), any(), any());
}
