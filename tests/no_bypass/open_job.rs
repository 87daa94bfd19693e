//! expect: E0616
//! Takes plan and permit out of a job.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(job: Job) {
    drop(job.plan); //~
    drop(job.permit); //~
}

fn main() {
    attack(any());
}
