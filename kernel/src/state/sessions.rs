//! Sessions: slots of the host's, each bound to one agent and one token.

use alloc::collections::VecDeque;

use crate::authority::tokens::TokenIndex;
use syscap_format::{
    AGGREGATE_FIRST, AGGREGATE_MAX, AgentId, Label, RELEASED_MAX, ResultHash, Seq, SnapshotId,
    TokenId,
};

/// An open session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) agent: AgentId,
    /// The agent of the root of its token's chain: as whose its calls are counted.
    pub(crate) root: AgentId,
    pub(crate) token: TokenIndex,
    pub(crate) token_id: TokenId,
    pub(crate) snapshot: SnapshotId,
    pub(crate) streak: Streak,
    /// Of a session that version 2 of its record opened: the join of what it began with and what
    /// was delivered to it. Any other has its family's.
    pub(crate) alone: Option<Label>,
    released: VecDeque<Released>,
}

/// A result that was released to a session, so that it can be referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Released {
    pub(crate) outcome: Seq,
    pub(crate) intent: Seq,
    pub(crate) result_hash: ResultHash,
}

impl Session {
    pub(crate) fn new(
        agent: AgentId,
        root: AgentId,
        alone: Option<Label>,
        token: TokenIndex,
        token_id: TokenId,
        snapshot: SnapshotId,
    ) -> Self {
        let (streak, released) = (Streak::default(), VecDeque::new());
        Self { agent, root, token, token_id, snapshot, streak, alone, released }
    }

    /// Joins what is delivered to it into the label of its own, if it has one.
    pub(crate) fn is_given(&mut self, label: Label) {
        self.alone = self.alone.map(|before| before.join(label));
    }

    /// Remembers a result; the oldest beyond [`RELEASED_MAX`] is forgotten.
    pub(crate) fn release(&mut self, released: Released) {
        if self.released.len() >= RELEASED_MAX {
            self.released.pop_front();
        }
        self.released.push_back(released);
    }

    /// The results that can be referred to, the oldest first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Released> {
        self.released.iter()
    }

    /// The records of the results that can be referred to.
    pub(crate) fn all_released(&self) -> impl Iterator<Item = Seq> {
        self.released.iter().map(|released| released.outcome)
    }

    pub(crate) fn released(&self, outcome: Seq) -> Option<Released> {
        let place = self.released.binary_search_by_key(&outcome, |r| r.outcome).ok()?;
        self.released.get(place).copied()
    }
}

/// Refusals in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Streak {
    pub(crate) in_a_row: u32,
    /// How many refusals the next aggregate answers at the most.
    pub(crate) next_max: u64,
    pub(crate) aggregate: Option<Aggregate>,
}

/// An aggregate that has been opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aggregate {
    pub(crate) opened: Seq,
    pub(crate) answers_max: u64,
    pub(crate) reserved: u64,
}

impl Default for Streak {
    fn default() -> Self {
        Self { in_a_row: 0, next_max: AGGREGATE_FIRST, aggregate: None }
    }
}

impl Streak {
    /// One more refusal in a row has a record of its own.
    pub(crate) fn count(&mut self) {
        self.in_a_row = self.in_a_row.saturating_add(1);
    }

    /// An aggregate opens; the one after it may answer four times as many.
    pub(crate) fn open(&mut self, aggregate: Aggregate) {
        self.aggregate = Some(aggregate);
        self.next_max = self.next_max.saturating_mul(4).min(AGGREGATE_MAX);
    }

    /// A call was admitted: the row is broken.
    pub(crate) fn reset(&mut self) {
        self.in_a_row = 0;
        self.next_max = AGGREGATE_FIRST;
    }
}
