//! The agents' states: for each the head snapshot, its facts by commitment, and what was before.

use alloc::collections::{BTreeMap, VecDeque};

use syscap_format::{
    ANCESTORS_MAX, AgentId, FACTS_MAX, FactId, FactKey, Seq, Snapshot, SnapshotId, StateChange,
};

/// A fact in force: its commitment, and the record in whose vault rows its value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FactRef {
    pub(crate) id: FactId,
    pub(crate) written: Seq,
}

/// One agent's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentState {
    head: Snapshot,
    id: SnapshotId,
    facts: BTreeMap<FactKey, FactRef>,
    ancestors: VecDeque<SnapshotId>,
}

impl AgentState {
    /// Without facts.
    pub(crate) fn genesis(agent: AgentId) -> Self {
        let head = Snapshot::genesis(agent);
        let id = head.id();
        Self { head, id, facts: BTreeMap::new(), ancestors: VecDeque::new() }
    }

    pub(crate) const fn id(&self) -> SnapshotId {
        self.id
    }

    pub(crate) const fn head(&self) -> &Snapshot {
        &self.head
    }

    pub(crate) const fn facts(&self) -> &BTreeMap<FactKey, FactRef> {
        &self.facts
    }

    /// The snapshots before the head, the oldest first.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = SnapshotId> {
        self.ancestors.iter().copied()
    }

    /// True if it is the head or one of the [`ANCESTORS_MAX`] before it.
    pub(crate) fn knows(&self, snapshot: &SnapshotId) -> bool {
        self.id == *snapshot || self.ancestors.contains(snapshot)
    }

    /// The snapshot that a change leads to; `None` where it would hold too much.
    pub(crate) fn after(
        &self,
        set: &BTreeMap<FactKey, FactId>,
        removed: &[FactKey],
    ) -> Option<Snapshot> {
        let mut facts: BTreeMap<FactKey, FactId> =
            self.facts.iter().map(|(key, fact)| (key.clone(), fact.id)).collect();
        facts.retain(|key, _| !removed.contains(key));
        facts.extend(set.iter().map(|(key, id)| (key.clone(), *id)));
        (facts.len() <= FACTS_MAX).then(|| self.head.next(&facts))
    }

    /// Moves the head. `None` where the snapshot is not what the record says of it.
    pub(crate) fn advance(&mut self, seq: Seq, change: &StateChange, next: Snapshot) -> Option<()> {
        let ids = next.fact_ids().ok()?;
        let set = change.set.iter().map(|key| Some((key.clone(), *ids.get(key)?)));
        let set: BTreeMap<FactKey, FactId> = set.collect::<Option<_>>()?;
        if self.after(&set, &change.removed)? != next || next.id() != change.snapshot {
            return None;
        }
        self.facts.retain(|key, _| !change.removed.contains(key));
        for (key, id) in set {
            self.facts.insert(key, FactRef { id, written: seq });
        }
        self.ancestors.push_back(self.id);
        if self.ancestors.len() > ANCESTORS_MAX {
            self.ancestors.pop_front();
        }
        self.id = change.snapshot;
        self.head = next;
        Some(())
    }
}
