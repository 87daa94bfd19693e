//! expect: E0603
//! Names the module that holds kernel and store together.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::driver::core::Core; //~

fn main() {
    drop(any::<Core>());
}
