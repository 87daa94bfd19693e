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

/// All of them. An agent's calls are paid by its own and by those of all agents above it.
#[derive(Clone, Debug, Default)]
pub(super) struct Credits(BTreeMap<AgentId, Purse>);

impl Credits {
    /// The purses that pay for an agent: few homes have many, and nothing is looked up by parts of
    /// a name here.
    fn paying<'a>(&'a self, agent: &'a AgentId) -> impl Iterator<Item = &'a Purse> {
        self.0.iter().filter(|(owner, _)| agent.is_within(owner)).map(|(_, purse)| purse)
    }

    fn each(&mut self, agent: &AgentId, since: Seq, mut change: impl FnMut(&mut Purse)) {
        let paying = self.0.iter_mut().filter(|(owner, _)| agent.is_within(owner));
        paying.map(|(_, purse)| purse).filter(|purse| purse.opened < since).for_each(&mut change);
    }

    /// One is given more. `None` where that is no number.
    pub(super) fn give(&mut self, seq: Seq, change: CreditChange) -> Option<()> {
        let new = Purse { opened: seq, ..Purse::default() };
        let purse = self.0.entry(change.agent).or_insert(new);
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
