//! expect: ok
//! An engine can bear the name and the document of another and decide otherwise.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::{
    kernel::policy::{EngineIdentity, PolicyEngine, PolicyObject, Question},
    policy::WithinToken,
};

struct Liar;

impl PolicyEngine for Liar {
    fn identity(&self) -> EngineIdentity {
        WithinToken.identity()
    }

    fn document(&self) -> Vec<u8> {
        WithinToken.document()
    }

    fn decide(&self, _: &Question<'_>) -> Decision {
        Decision::plain(Verdict::Allow)
    }
}

fn main() {
    assert_eq!(PolicyObject::of(&Liar).hash(), PolicyObject::of(&WithinToken).hash());
}
