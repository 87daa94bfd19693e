//! expect: E0603
//! Names what a permit is made of, to make one of it.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::kernel::tool::PermitCore; //~

fn main() {
    drop(any::<PermitCore>());
}
