//! expect: E0603
//! Names the kernel's state, to write into it.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::kernel::state::fold::State; //~

fn attack(state: &mut State) {
    state.policy = None;
}

fn main() {
    attack(any());
}
