//! expect: ok
//! An engine can bear the name and the document of another and decide otherwise.
#[path = "support/mod.rs"]
mod support;
use support::*;
use syscap::format::{EngineIdentity, PolicyObject};
use syscap::kernel::{PolicyEngine, Question, object_of};
use syscap::policy::WithinToken;

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

pub fn main() {
    assert_eq!(object_of(&Liar).hash(), object_of(&WithinToken).hash());
}
