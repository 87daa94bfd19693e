//! Tools of the host's own: closures, typed plans, futures, and calls from asynchronous code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

mod host {
    mod closures;
    mod futures;
    mod offers;
    mod sessions;
    mod typed;
    mod uses;
    pub(crate) mod world;
}
#[path = "seen/records.rs"]
mod records;

#[path = "../examples/async_tool.rs"]
mod async_tool;
#[path = "../examples/closure_tool.rs"]
mod closure_tool;
#[path = "../examples/typed_tool.rs"]
mod typed_tool;

/// The examples say themselves what must come of them.
#[test]
fn the_examples_run() {
    closure_tool::main().unwrap();
    typed_tool::main().unwrap();
    async_tool::main().unwrap();
}
