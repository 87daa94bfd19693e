//! An agent's recent calls, for a policy.
//!
//! *The agent* is the one that the root of the token's chain is for: what it has handed on counts
//! as its own. A count covers at least the last minute, hour or day of kernel time, and at most one
//! bucket more: 65 seconds, 65 minutes, 26 hours.

use core::cell::OnceCell;

use crate::state::rates::Rates;
use syscap_format::{AgentId, ToolId, UnixMillis, field::code};

code! {
    /// One of the counts, by what is counted, of whom, and since when.
    pub enum Past {
        /// Calls of the agent that were admitted, in the last minute.
        CallsAgentMinute = 0 "calls.agent.minute",
        /// In the last hour.
        CallsAgentHour = 1 "calls.agent.hour",
        /// In the last day.
        CallsAgentDay = 2 "calls.agent.day",
        /// The calls of this tool.
        CallsToolMinute = 3 "calls.tool.minute",
        /// In the last hour.
        CallsToolHour = 4 "calls.tool.hour",
        /// In the last day.
        CallsToolDay = 5 "calls.tool.day",
        /// Calls of the agent that were refused, or asked about. Refusals that a record counts
        /// together count as many as that record may answer.
        RefusalsAgentMinute = 6 "refusals.agent.minute",
        /// In the last hour.
        RefusalsAgentHour = 7 "refusals.agent.hour",
        /// In the last day.
        RefusalsAgentDay = 8 "refusals.agent.day",
        /// The refusals of this tool, without those that are counted together.
        RefusalsToolMinute = 9 "refusals.tool.minute",
        /// In the last hour.
        RefusalsToolHour = 10 "refusals.tool.hour",
        /// In the last day.
        RefusalsToolDay = 11 "refusals.tool.day",
        /// Bytes that the agent's calls wrote and sent: what they have set aside until it is known
        /// what they used, at the time when they were admitted.
        BytesAgentMinute = 12 "bytes.agent.minute",
        /// In the last hour.
        BytesAgentHour = 13 "bytes.agent.hour",
        /// In the last day.
        BytesAgentDay = 14 "bytes.agent.day",
        /// The bytes of this tool.
        BytesToolMinute = 15 "bytes.tool.minute",
        /// In the last hour.
        BytesToolHour = 16 "bytes.tool.hour",
        /// In the last day.
        BytesToolDay = 17 "bytes.tool.day",
    }
}

impl Past {
    /// The count of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|past| past.name() == name)
    }
}

/// All counts, as a call found them: without itself.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History([u64; 18]);

impl History {
    /// One of them.
    pub fn get(&self, past: Past) -> u64 {
        self.0.get(place(past)).copied().unwrap_or(0)
    }

    /// These, with another value for one.
    pub fn with(mut self, past: Past, count: u64) -> Self {
        if let Some(slot) = self.0.get_mut(place(past)) {
            *slot = count;
        }
        self
    }

    /// No history: all counts are zero.
    pub const fn none() -> Self {
        Self([0; 18])
    }

    /// All of them, by number.
    pub(crate) fn of(counts: impl Iterator<Item = u64>) -> Self {
        let mut history = Self::none();
        history.0.iter_mut().zip(counts).for_each(|(slot, count)| *slot = count);
        history
    }
}

/// An agent's past for a policy: counted only when it asks, since few do.
#[derive(Clone, Debug)]
pub struct Told<'a> {
    counted: OnceCell<History>,
    log: Option<Doer<'a>>,
}

/// The subject of a question about the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doer<'a> {
    pub(crate) rates: &'a Rates,
    pub(crate) agent: &'a AgentId,
    pub(crate) tool: &'a ToolId,
    pub(crate) now: UnixMillis,
}

impl<'a> Told<'a> {
    pub(crate) const fn by_log(doer: Doer<'a>) -> Self {
        Self { counted: OnceCell::new(), log: Some(doer) }
    }

    /// One of the counts.
    pub fn get(&self, past: Past) -> u64 {
        let count = || match self.log {
            Some(Doer { rates, agent, tool, now }) => rates.history(agent, tool, now),
            None => History::none(),
        };
        self.counted.get_or_init(count).get(past)
    }
}

impl From<History> for Told<'_> {
    fn from(history: History) -> Self {
        Self { counted: OnceCell::from(history), log: None }
    }
}

/// The index of a count; its code is one of 18.
fn place(past: Past) -> usize {
    usize::try_from(past.code()).unwrap_or(usize::MAX)
}
