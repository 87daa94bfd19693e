//! expect: E0117
//! Teaches two permits a conversion into each other.
#[path = "support/mod.rs"]
mod support;
use support::*;

//~
impl From<Permit<FsReadPlan>> for Permit<FsWritePlan> {
    fn from(_: Permit<FsReadPlan>) -> Self {
        any()
    }
}

fn main() {}
