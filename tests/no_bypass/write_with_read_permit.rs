//! expect: E0308
//! Writes in a plan for reading, whose intent need not be durable.
#[path = "support/mod.rs"]
mod support;
use support::*;

struct Trojan {
    demands: Demands,
    inner: FsWritePlan,
}

impl ReadPlan for Trojan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, permit: ReadPermit<'_, Self>) -> Ran<'_> {
        self.inner.run(permit) //~
    }
}

fn main() {}
