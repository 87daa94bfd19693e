//! Accounts of agents: what an operator gave, and what was spent of that.

use std::collections::BTreeMap;

use syscap_format::{AgentId, Amounts, CreditChange, Dimension, Seq};

/// One account, in millionths of a credit.
#[derive(Clone, Copy, Debug, Default)]
struct Purse {
    opened: Seq,
    granted: u64,
    used: u64,
    held: u64,
}

/// All of them, by the agents' names. An agent's calls are paid by its own and by those of all
/// agents above it.
#[derive(Clone, Debug, Default)]
pub(super) struct Credits(BTreeMap<Box<str>, Purse>);

/// An agent's name, and those of the agents above it.
fn names(agent: &AgentId) -> impl Iterator<Item = &str> {
    let name = agent.as_str();
    let above = name.match_indices('/').filter_map(move |(end, _)| name.get(..end));
    above.chain([name])
}

impl Credits {
    /// The purses that pay for an agent.
    fn paying<'a>(&'a self, agent: &'a AgentId) -> impl Iterator<Item = &'a Purse> {
        names(agent).filter_map(|name| self.0.get(name))
    }

    fn each(&mut self, agent: &AgentId, since: Seq, change: impl Fn(&mut Purse)) {
        for name in names(agent) {
            self.0.get_mut(name).into_iter().filter(|purse| purse.opened < since).for_each(&change);
        }
    }

    /// One is given more. `None` where that is no number.
    pub(super) fn give(&mut self, seq: Seq, change: CreditChange) -> Option<()> {
        let new = Purse { opened: seq, ..Purse::default() };
        let purse = self.0.entry(Box::from(change.agent.as_str())).or_insert(new);
        purse.granted = purse.granted.checked_add(change.added)?;
        Some(())
    }

    /// True if each has so much left.
    pub(super) fn covers(&self, agent: &AgentId, wanted: &Amounts) -> bool {
        let wanted = wanted.get(Dimension::CreditsMicro);
        self.paying(agent).all(|purse| {
            let booked = purse.used.saturating_add(purse.held);
            wanted <= purse.granted.saturating_sub(booked)
        })
    }

    /// True if one has no unused rest.
    pub(super) fn is_spent(&self, agent: &AgentId) -> bool {
        self.paying(agent).any(|purse| purse.used >= purse.granted)
    }

    pub(super) fn hold(&mut self, agent: &AgentId, intent: Seq, held: &Amounts) {
        let held = held.get(Dimension::CreditsMicro);
        self.each(agent, intent, |purse| purse.held = purse.held.saturating_add(held));
    }

    pub(super) fn free(&mut self, agent: &AgentId, intent: Seq, held: &Amounts) {
        let held = held.get(Dimension::CreditsMicro);
        self.each(agent, intent, |purse| purse.held = purse.held.saturating_sub(held));
    }

    pub(super) fn pay(&mut self, agent: &AgentId, since: Seq, used: &Amounts) {
        let used = used.get(Dimension::CreditsMicro);
        self.each(agent, since, |purse| purse.used = purse.used.saturating_add(used));
    }
}
