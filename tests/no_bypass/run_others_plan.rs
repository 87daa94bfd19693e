//! expect: E0308
//! Hides a file write in a plan of its own and runs it with that plan's permit.
#[path = "support/mod.rs"]
mod support;
use support::*;

struct Trojan {
    demands: Demands,
    inner: FsWritePlan,
}

impl Plan for Trojan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        self.inner.run(permit) //~
    }
}

fn main() {}
