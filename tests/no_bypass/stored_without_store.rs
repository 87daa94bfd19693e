//! expect: E0061
//! Turns a batch into proof of storage without a store.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(batch: Batch) {
    drop(batch.commit()); //~
}

fn main() {
    attack(any());
}
