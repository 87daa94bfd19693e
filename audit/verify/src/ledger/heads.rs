//! The agents' heads: which snapshots a call may name, and what the head holds.

use std::collections::{BTreeMap, VecDeque};

use syscap_format::{ANCESTORS_MAX, AgentId, FactId, FactKey, Snapshot, SnapshotId};

/// The facts of a snapshot, by commitment.
pub(super) type FactIds = BTreeMap<FactKey, FactId>;

/// One agent's snapshots.
#[derive(Clone, Debug)]
pub(super) struct Heads {
    head: SnapshotId,
    number: u64,
    /// Not known where the head's object is missing or unsound.
    facts: Option<FactIds>,
    before: VecDeque<SnapshotId>,
}

impl Heads {
    /// The first snapshot of an agent, which has no facts.
    pub(super) fn genesis(agent: AgentId) -> Self {
        Self::begin(Snapshot::genesis(agent).id())
    }

    /// A first snapshot by its id: what a log claims.
    pub(super) fn begin(head: SnapshotId) -> Self {
        Self { head, number: 0, facts: Some(FactIds::new()), before: VecDeque::new() }
    }

    pub(super) const fn head(&self) -> SnapshotId {
        self.head
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    pub(super) const fn facts(&self) -> Option<&FactIds> {
        self.facts.as_ref()
    }

    /// True if a call may name it: the head, or one of so many before.
    pub(super) fn knows(&self, snapshot: SnapshotId) -> bool {
        self.head == snapshot || self.before.contains(&snapshot)
    }

    /// Moves on to what a record claims to be the head.
    pub(super) fn advance(&mut self, head: SnapshotId, number: u64, facts: Option<FactIds>) {
        self.before.push_back(self.head);
        if self.before.len() > ANCESTORS_MAX {
            self.before.pop_front();
        }
        (self.head, self.number, self.facts) = (head, number, facts);
    }
}
