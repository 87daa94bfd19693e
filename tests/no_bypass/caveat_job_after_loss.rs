//! expect: ok
//! A host can report a run as lost that it has not begun, and begin it then.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::kernel::Lost;

fn attack(kernel: &mut Kernel, job: Job, now: Reading) -> Ran<'static> {
    kernel.handle(Event::Lost(job.intent(), Lost::Abandoned, Default::default()), now);
    job.run()
}

pub fn main() {
    assert!(attack as usize != 0);
}
