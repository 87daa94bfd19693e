//! expect: E0616
//! Gets at the tools that a kernel owns.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(kernel: &Kernel, registry: &Registry) {
    drop(kernel.registry.find(any())); //~
    drop(registry.tools.first()); //~
}

fn main() {
    attack(any(), any());
}
