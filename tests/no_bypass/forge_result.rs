//! expect: E0451
//! Answers a call by itself.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack() -> ToolResult {
    ToolResult {
        tool: None,          //~
        agent: None,         //~
        snapshot: None,      //~
        reason: None,        //~
        delivered: done(),   //~
        result_hash: any(),  //~
        provenance: None,    //~
        tx: TxOutcome::NoOp, //~
        degraded: any(),     //~
        constraint: None,    //~
        receipt: any(),      //~
    }
}

fn main() {
    drop(attack());
}
