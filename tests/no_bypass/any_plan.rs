//! expect: E0603
//! Names the crate-private plan without a type, and the tool without one.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::kernel::tool::AnyPlan; //~
use syscap::kernel::tool::AnyTool; //~

fn attack(plan: Box<dyn AnyPlan>, tool: &dyn AnyTool) -> Ran {
    drop(tool.manifest());
    plan.run(any())
}

fn main() {
    drop(attack(any(), any()));
}
