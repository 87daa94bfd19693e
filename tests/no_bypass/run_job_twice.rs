//! expect: E0382
//! Runs one job twice.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(job: Job) -> [Ran<'static>; 2] {
    let first = job.run();
    let second = job.run(); //~
    [first, second]
}

fn main() {
    drop(attack(any()));
}
