//! Credits of agents: what an operator has given an agent and all below it, beside the budgets of
//! their tokens. Each call is charged to every account of its agent's path, as it is to every
//! token of its chain.

use alloc::collections::BTreeMap;

use syscap_format::{AccountImage, AgentId, Amounts, CreditChange, Dimension, Seq};

const CREDITS: Dimension = Dimension::CreditsMicro;

/// An agent's account: the credits that it and all agents below it were given and have spent. In
/// millionths of a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Account {
    /// The record that opened it: it pays for what was admitted or posted after that.
    opened: Seq,
    granted: u64,
    used: u64,
    held: u64,
}

impl Account {
    const fn left(&self) -> u64 {
        self.granted.saturating_sub(self.used.saturating_add(self.held))
    }
}

/// An account, for those who look. Amounts are millionths of a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountView<'a> {
    /// The agent; the account is that of all agents below it, too.
    pub agent: &'a AgentId,
    /// The credits given in all.
    pub granted: u64,
    /// The credits used. A charge after the fact can exceed what was given.
    pub used: u64,
    /// The credits reserved for calls in flight.
    pub held: u64,
    /// The credits left.
    pub left: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Credits(BTreeMap<AgentId, Account>);

impl Credits {
    /// The credits that an account would have been given in all; `None` if that overflows.
    pub(crate) fn after(&self, change: &CreditChange) -> Option<u64> {
        self.0.get(&change.agent).map_or(0, |account| account.granted).checked_add(change.added)
    }

    /// Adds to an account, and opens it where there is none.
    pub(crate) fn grant(&mut self, seq: Seq, change: &CreditChange) -> Option<()> {
        let granted = self.after(change)?;
        let new = Account { opened: seq, granted, used: 0, held: 0 };
        self.0.entry(change.agent.clone()).or_insert(new).granted = granted;
        Some(())
    }

    /// The account that has the least left, of those that pay for an agent, and what that is.
    pub(crate) fn least(&self, agent: &AgentId) -> Option<(&AgentId, u64)> {
        self.of(agent).map(|(agent, account)| (agent, account.left())).min_by_key(|(_, left)| *left)
    }

    /// The rest for an agent that has so much left by its token.
    pub(crate) fn bound(&self, agent: &AgentId, left: Amounts) -> Amounts {
        match self.least(agent) {
            Some((_, credits)) => left.with(CREDITS, left.get(CREDITS).min(credits)),
            None => left,
        }
    }

    /// An account that pays for an agent and has nothing left that was not used: then the agent
    /// does nothing.
    pub(crate) fn spent(&self, agent: &AgentId) -> Option<&AgentId> {
        let mut spent = self.of(agent).filter(|(_, account)| account.used >= account.granted);
        spent.next().map(|(agent, _)| agent)
    }

    pub(crate) fn views(&self) -> impl Iterator<Item = AccountView<'_>> {
        self.0.iter().map(|(agent, account)| {
            let Account { granted, used, held, .. } = *account;
            AccountView { agent, granted, used, held, left: account.left() }
        })
    }

    pub(crate) fn images(&self) -> impl Iterator<Item = AccountImage> {
        self.0.iter().map(|(agent, account)| {
            let (agent, Account { opened, granted, used, held }) = (agent.clone(), *account);
            AccountImage { agent, opened, granted, used, held }
        })
    }

    /// The accounts of an agent and of those above it.
    fn of(&self, agent: &AgentId) -> impl Iterator<Item = (&AgentId, &Account)> {
        agent.lineage().filter_map(|name| self.0.get_key_value(name))
    }

    /// Sets aside what an intent holds.
    pub(crate) fn hold(&mut self, agent: &AgentId, intent: Seq, held: &Amounts) {
        let credits = held.get(CREDITS);
        self.change(agent, intent, |account| account.held = account.held.saturating_add(credits));
    }

    /// Frees what was set aside by a record and charges what was used.
    pub(crate) fn settle(&mut self, agent: &AgentId, seq: Seq, held: &Amounts, used: &Amounts) {
        let (freed, credits) = (held.get(CREDITS), used.get(CREDITS));
        self.change(agent, seq, |account| {
            account.held = account.held.saturating_sub(freed);
            account.used = account.used.saturating_add(credits);
        });
    }

    /// The accounts among them that existed before a record.
    fn change(&mut self, agent: &AgentId, seq: Seq, mut change: impl FnMut(&mut Account)) {
        for name in agent.lineage() {
            if let Some(account) = self.0.get_mut(name).filter(|account| account.opened < seq) {
                change(account);
            }
        }
    }
}
