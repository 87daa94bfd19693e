//! expect: E0451
//! Says of a call that a crash broke off that it was not done, without having asked its tool.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::format::{Amounts, HomeId};
use syscap::kernel::{Finding, Probed};

fn attack(home: HomeId, intent: Seq) -> Probed {
    Probed { home, intent, finding: Finding::NotDone(Amounts::ZERO) } //~
}

fn main() {
    drop(attack(any(), any()));
}
