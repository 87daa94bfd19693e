//! State snapshots. Each agent has a genesis snapshot without facts; facts come with policy.

use alloc::vec::Vec;

use crate::{
    cbor::{Canonical, DecodeError, MapBuilder},
    field::{decode, encode, shape},
    hash::Domain,
    id::{AgentId, SnapshotId},
};

shape! {
    /// An agent's sparse state at one point.
    pub struct Snapshot {
        /// Version of this form.
        1 => pub version: u64,
        /// The agent.
        2 => pub agent: AgentId,
        /// The snapshot before; null for the first.
        3 => pub parent: Option<SnapshotId>,
        /// 0 for the first.
        4 => pub number: u64,
        /// The facts: a map from key to salted fact id.
        5 => pub facts: Canonical,
        /// The label; reserved.
        6 => pub label: Option<u64>,
    }
}

impl Snapshot {
    /// The first snapshot of an agent: no facts.
    #[must_use]
    pub fn genesis(agent: AgentId) -> Self {
        let facts = MapBuilder::new().finish();
        Self { version: 1, agent, parent: None, number: 0, facts, label: None }
    }

    /// The canonical bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the canonical bytes.
    ///
    /// # Errors
    /// The first fault.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        decode(bytes)
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> SnapshotId {
        SnapshotId::from_bytes(Domain::SNAPSHOT.hash(&[&self.to_bytes()]))
    }
}
