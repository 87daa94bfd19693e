//! expect: E0603
//! Names the steps of a call, to go from the first to the last.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::kernel::call::{Call, Reserved}; //~

fn main() {
    drop(any::<Call<Reserved>>());
}
