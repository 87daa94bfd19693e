//! expect: E0451
//! Settles a call that did not run, by a report of its own making.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack() -> Ran<'static> {
    Ran {
        intent: Seq::new(1), //~
        digest: any(),       //~
        reason: None,        //~
        delivered: done(),   //~
        result_hash: any(),  //~
        used: Amounts::ZERO, //~
        tx: TxOutcome::NoOp, //~
        enforcement: any(),  //~
        flags: any(),        //~
        label: any(),        //~
        brand: any(),        //~
    }
}

fn main() {
    drop(attack());
}
