//! expect: ok
//! A host drives a kernel: it commits, runs jobs and reports them.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn drive(kernel: &mut Kernel, store: &mut dyn Store, now: Reading) -> Vec<ToolResult> {
    let mut results = Vec::new();
    loop {
        if let Some(batch) = kernel.take_batch() {
            match batch.commit(store) {
                Ok(stored) => kernel.handle(Event::Stored(stored), now),
                Err(halt) => kernel.halt(halt),
            }
        }
        match kernel.poll_effect() {
            Some(Effect::Run(_, job)) => {
                let ran = job.run();
                kernel.handle(Event::Ran(ran, Default::default()), now);
            }
            Some(Effect::Resolve(ticket, links)) => {
                kernel.handle(Event::Resolved(ticket, links.run()), now);
            }
            Some(Effect::Inspect(ticket, what)) => {
                kernel.handle(Event::Inspected(ticket, Some(what.run())), now);
            }
            Some(Effect::Reply(_, result)) => results.push(*result),
            Some(Effect::Fetch(..) | Effect::Ack(..)) => {}
            None => return results,
        }
    }
}

pub fn main() {
    assert!(drive as usize != 0);
}
