//! expect: ok
//! A plan meters, says how its scope was enforced, and gives its permit back.
#[path = "support/mod.rs"]
mod support;
use support::*;

struct Careful(Demands);

impl Plan for Careful {
    fn demands(&self) -> &Demands {
        &self.0
    }

    fn run(self, mut permit: Permit<'_, Self>) -> Ran<'_> {
        if permit.meter(Dimension::DiskWriteBytes, permit.hold().get(Dimension::Calls)).is_err() {
            let refused = Refused::new(syscap::format::Reason::OverHold);
            return permit.failed(refused, TxOutcome::NoOp);
        }
        permit.enforced_by(syscap::format::Enforcement::Openat2);
        permit.ok(done(), TxOutcome::Committed)
    }
}

fn run(plan: Careful, permit: Permit<'_, Careful>) -> Ran<'_> {
    plan.run(permit)
}

pub fn main() {
    assert!(run as usize != 0);
}
