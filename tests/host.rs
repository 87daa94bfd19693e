//! Tools of the host's own: closures, typed plans, futures, and calls from asynchronous code.

mod closures;
mod futures;
mod needs;
mod offers;
mod sessions;
mod shares;
mod transactions;
mod typed;
mod uses;
mod world;

use std::{env, process::Command};

#[path = "../docs/examples/agent_loop.rs"]
mod agent_loop;
#[path = "../docs/examples/async_tool.rs"]
mod async_tool;
#[path = "../docs/examples/closure_tool.rs"]
mod closure_tool;
#[allow(dead_code, reason = "its `main` would begin this program anew")]
#[path = "../docs/examples/lend.rs"]
mod lend;
#[path = "../docs/examples/search_docs.rs"]
mod search_docs;
#[path = "../docs/examples/typed_tool.rs"]
mod typed_tool;

/// The examples say themselves what must come of them.
#[test]
fn the_examples_run() {
    closure_tool::main().unwrap();
    typed_tool::main().unwrap();
    async_tool::main().unwrap();
    agent_loop::main().unwrap();
    search_docs::main().unwrap();
    lend::hold(|home| {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["--exact", "host::a_child_takes_a_session", "--nocapture"]).env(HOME, home);
        child
    })
    .unwrap();
}

/// Names the home to the program that is to be a child.
const HOME: &str = "SYSCAP_TEST_LENT";

/// Begun by the test above, in a process of its own; else it has nothing to do.
#[test]
fn a_child_takes_a_session() {
    if let Ok(home) = env::var(HOME) {
        lend::agent(&home).unwrap();
    }
}
