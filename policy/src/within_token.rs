//! The engine that adds nothing to the capability.

use alloc::{boxed::Box, vec::Vec};
use syscap_kernel::{PolicyEngine, Question};

use syscap_format::{Decision, EngineIdentity, MapBuilder, Verdict};

/// Allows what the capability grants, and nothing else: every resource that the plan would
/// touch must be permitted by the token's scope in its dimension. It has no rules of its own,
/// so its document is the empty map.
///
/// ```
/// use syscap_kernel::{PolicyEngine as _, object_of};
/// use syscap_policy::WithinToken;
///
/// assert_eq!(WithinToken.document(), [0xa0]);
/// assert_eq!(object_of(&WithinToken).hash(), object_of(&WithinToken).hash());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WithinToken;

impl PolicyEngine for WithinToken {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("within-token"), version: 1 }
    }

    fn document(&self) -> Vec<u8> {
        MapBuilder::new().finish().into_bytes()
    }

    fn decide(&self, question: &Question<'_>) -> Decision {
        let within = question
            .demands
            .iter()
            .all(|demand| question.grant.permits(demand.dimension, &demand.resource));
        Decision::plain(if within { Verdict::Allow } else { Verdict::Deny })
    }
}
