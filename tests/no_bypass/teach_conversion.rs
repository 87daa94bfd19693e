//! expect: E0117
//! Teaches two permits a conversion into each other.
#[path = "support/mod.rs"]
mod support;
use support::*;

//~
impl From<Permit<'_, FsReadPlan>> for Permit<'_, FsWritePlan> {
    fn from(_: Permit<'_, FsReadPlan>) -> Self {
        any()
    }
}

fn main() {}
