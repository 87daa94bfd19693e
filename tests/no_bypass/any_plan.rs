//! expect: E0603
//! Runs a plan by its crate-private face, which takes any permit.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::kernel::tool::AnyPlan; //~
use syscap::kernel::tool::AnyTool; //~

fn attack(plan: Box<dyn AnyPlan>, tool: &dyn AnyTool) -> Ran<'_> {
    drop(tool.manifest().clone());
    plan.run(any())
}

fn main() {
    drop(attack(any(), any()));
}
