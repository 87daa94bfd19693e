//! Shares of what is bounded for all agents together: the agent that has most gives one up, and none
//! loses its last.

use std::collections::BTreeMap;

use syscap_format::AgentId;

/// The agent that gives up one of these for another's new one; `None` if nobody has more than one.
/// The one that asks gives up its own where nobody has more than it.
pub(crate) fn who_gives_up<'a>(
    owners: impl Iterator<Item = &'a AgentId>,
    asking: &'a AgentId,
) -> Option<&'a AgentId> {
    let mut counts: BTreeMap<&AgentId, usize> = BTreeMap::new();
    for owner in owners {
        let count = counts.entry(owner).or_default();
        *count = count.saturating_add(1);
    }
    let most = counts.iter().max_by_key(|(owner, count)| (**count, **owner == asking));
    most.filter(|(_, count)| **count > 1).map(|(owner, _)| *owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_with_most_gives_up_and_nobody_its_last() {
        let agent = |name: &str| AgentId::new(name).unwrap();
        let (a, b, c) = (agent("a"), agent("b"), agent("c"));
        assert_eq!(who_gives_up([&a, &a, &b].into_iter(), &c), Some(&a));
        assert_eq!(who_gives_up([&a, &a, &b].into_iter(), &b), Some(&a));
        assert_eq!(who_gives_up([&a, &a, &b, &b].into_iter(), &b), Some(&b));
        assert_eq!(who_gives_up([&a, &a, &b, &b].into_iter(), &a), Some(&a));
        assert_eq!(who_gives_up([&a, &b].into_iter(), &c), None);
        assert_eq!(who_gives_up([].into_iter(), &c), None);
    }
}
