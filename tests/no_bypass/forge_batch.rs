//! expect: E0451
//! Makes a batch of records of its own.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(home: HomeId) -> Batch {
    Batch {
        home,                //~
        after: None,         //~
        links: Vec::new(),   //~
        objects: Vec::new(), //~
        vault: Vec::new(),   //~
        erased: Vec::new(),  //~
    }
}

fn main() {
    drop(attack(any()));
}
