//! expect: E0616
//! Takes plan and permit out of a job.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(job: Job) {
    let plan = job.plan; //~
    let permit = job.permit; //~
    drop((plan, permit));
}

fn main() {
    attack(any());
}
