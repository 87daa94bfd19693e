//! expect: E0382
//! Commits one batch to two stores.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(batch: Batch, a: &mut dyn Store, b: &mut dyn Store) {
    drop(batch.commit(a));
    drop(batch.commit(b)); //~
}

fn main() {
    attack(any(), any(), any());
}
