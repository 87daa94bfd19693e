//! Derivation: a child may only take away.

use super::{TokenBody, TokenFlags};
use crate::id::TokenId;
use crate::reason::{Reason, Refused};

/// Checks that `child` is a rightful derivation of the parent of that id: signed by its holder, for
/// the same home, for the same agent or one below, later to begin, sooner to end, and with no
/// grant, budget, flag or policy that gives more. The rules are those of `docs/spec/tokens.md`.
///
/// # Errors
/// [`Reason::OutOfScope`] naming the key that gives more, [`Reason::WrongIssuer`],
/// [`Reason::WrongAudience`] or [`Reason::NoDelegation`].
pub fn attenuates(
    child: &TokenBody,
    parent_id: TokenId,
    parent: &TokenBody,
) -> Result<(), Refused> {
    let holder = parent.holder.ok_or(Refused::new(Reason::NoDelegation))?;
    if parent.flags.has(TokenFlags::TERMINAL) || parent.depth >= parent.depth_max {
        return Err(Refused::new(Reason::NoDelegation));
    }
    if child.issuer != holder {
        return Err(Refused::new(Reason::WrongIssuer).field("issuer"));
    }
    if child.audience != parent.audience {
        return Err(Refused::new(Reason::WrongAudience).field("audience"));
    }
    let narrower = [
        ("parent", child.parent == Some(parent_id)),
        ("depth", Some(child.depth) == parent.depth.checked_add(1)),
        ("depth_max", child.depth_max <= parent.depth_max),
        ("agent", child.agent.is_within(&parent.agent)),
        ("not_before", child.not_before >= parent.not_before),
        ("expires", child.expires <= parent.expires),
        ("epoch", child.epoch >= parent.epoch),
        ("grants", child.grants.leq(&parent.grants)),
        ("budget", child.budget.leq(&parent.budget)),
        ("policy", parent.policy.is_none() || child.policy == parent.policy),
        ("flags", child.flags.has(parent.flags)),
    ];
    match narrower.iter().find(|(_, fine)| !fine) {
        Some((key, _)) => Err(Refused::new(Reason::OutOfScope).field(key)),
        None => Ok(()),
    }
}
