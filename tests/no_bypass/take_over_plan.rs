//! expect: E0119
//! Implements `Plan` anew for a plan that has it, to get at its bare permit.
#[path = "support/mod.rs"]
mod support;
use support::*;

impl Plan for syscap::syscalls::fs::FsWritePlan { //~
    fn demands(&self) -> &Demands {
        any()
    }

    fn run(self, permit: Permit<Self>) -> Ran {
        permit.ok(done(), TxOutcome::Committed)
    }
}

fn main() {}
