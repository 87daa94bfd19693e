//! expect: E0382
//! Commits one batch to two stores.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(batch: Batch, one: &mut dyn Store, other: &mut dyn Store) {
    drop(batch.commit(one));
    drop(batch.commit(other)); //~
}

fn main() {
    attack(any(), any(), any());
}
