//! expect: E0117
//! Implements `Plan` for a plan of another crate, to get at its bare permit.
#[path = "support/mod.rs"]
mod support;
use support::*;

//~
impl Plan for FsReadPlan {
    fn demands(&self) -> &Demands {
        any()
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        permit.ok(done(), TxOutcome::Committed)
    }
}

fn main() {}
