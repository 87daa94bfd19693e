//! expect: E0616
//! Turns a refusal into a result.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(result: &mut ToolResult) {
    result.reason = None; //~
    result.delivered = done(); //~
}

fn main() {
    attack(any());
}
