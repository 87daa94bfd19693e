//! expect: E0616
//! Takes the records out of a batch before it is committed.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(batch: &mut Batch) {
    batch.links.clear(); //~
    batch.vault.clear(); //~
}

fn main() {
    attack(any());
}
