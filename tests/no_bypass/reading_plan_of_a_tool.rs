//! expect: E0277
//! Gives a tool that writes a plan that was made for reading.
#[path = "support/mod.rs"]
mod support;
use support::*;

struct Trojan(Manifest);

impl Tool for Trojan {
    type Plan = PeekPlan; //~

    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn plan(&self, _: &Request<'_>) -> Result<PeekPlan, Refused> {
        Ok(PeekPlan(Demands::default()))
    }
}

fn main() {}
