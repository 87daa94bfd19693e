//! expect: E0616
//! Gets at the tools that a kernel or its registry owns.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(kernel: &Kernel, registry: &Registry) {
    drop(kernel.registry.names()); //~
    drop(registry.tools.len()); //~
}

fn main() {
    attack(any(), any());
}
