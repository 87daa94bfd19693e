//! expect: E0451
//! Claims that records are durable.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(home: HomeId, head: Head) -> Stored {
    Stored {
        home,                      //~
        head,                      //~
        spare: Default::default(), //~
    }
}

fn main() {
    drop(attack(any(), any()));
}
