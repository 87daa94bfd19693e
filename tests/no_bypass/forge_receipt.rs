//! expect: E0639
//! Writes a receipt of its own.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::kernel::{envelope::Receipt, id::Leaf, kernel::Ack, manifest::Enforcement};

fn main() {
    //~
    let receipt = Receipt {
        home: HomeId::from_bytes([0; 32]),
        intent: None,
        outcome_seq: Seq::new(1),
        outcome_leaf: Leaf::from_bytes([0; 32]),
        used: Amounts::ZERO,
        left: Amounts::ZERO,
        enforcement: Enforcement::Openat2,
    };
    assert_ne!(Ack::Recorded(receipt.outcome_seq), Ack::Token(TokenId::from_bytes([0; 32])));
}
