//! Derivation: a child may only take away.

use super::{TokenBody, TokenFlags};
use crate::id::TokenId;
use crate::reason::{Reason, Refused};

/// Whether `child` is a rightful derivation of the parent of that id: signed by its holder, for the
/// same home, for the same agent or one below, later to begin, sooner to end, and with no grant,
/// budget, flag or policy that gives more. The rules are those of `docs/spec.md` section 4.
///
/// # Errors
/// [`Reason::OutOfScope`] naming the key that gives more, [`Reason::WrongIssuer`],
/// [`Reason::WrongAudience`] or [`Reason::NoDelegation`].
pub fn attenuates(child: &TokenBody, (parent, p): (TokenId, &TokenBody)) -> Result<(), Refused> {
    let c = child;
    let holder = p.holder.ok_or(Refused::new(Reason::NoDelegation))?;
    if p.flags.has(TokenFlags::TERMINAL) || p.depth >= p.depth_max {
        return Err(Refused::new(Reason::NoDelegation));
    }
    if c.issuer != holder {
        return Err(Refused::new(Reason::WrongIssuer).field("issuer"));
    }
    if c.audience != p.audience {
        return Err(Refused::new(Reason::WrongAudience).field("audience"));
    }
    let narrower = [
        ("parent", c.parent == Some(parent)),
        ("depth", Some(c.depth) == p.depth.checked_add(1)),
        ("depth_max", c.depth_max <= p.depth_max),
        ("agent", c.agent.is_within(&p.agent)),
        ("not_before", c.not_before >= p.not_before),
        ("expires", c.expires <= p.expires),
        ("epoch", c.epoch >= p.epoch),
        ("grants", c.grants.leq(&p.grants)),
        ("budget", c.budget.leq(&p.budget)),
        ("policy", p.policy.is_none() || c.policy == p.policy),
        ("flags", c.flags.has(p.flags)),
    ];
    match narrower.iter().find(|(_, fine)| !fine) {
        Some((key, _)) => Err(Refused::new(Reason::OutOfScope).field(key)),
        None => Ok(()),
    }
}
