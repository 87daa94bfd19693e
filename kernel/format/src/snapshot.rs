//! State snapshots: what an agent's state is at one point, by commitments.
//!
//! Each agent has a genesis snapshot without facts; every change makes another one, which names
//! the one before. A snapshot's id is its hash, so an agent's head commits to all before it.

use alloc::{collections::BTreeMap, vec::Vec};

use crate::cbor::{Canonical, DecodeError, DecodeFault, Decoder, Encoder, MapBuilder, Profile};
use crate::facts::FactKey;
use crate::field::{Field, decode, encode, shape};
use crate::hash::Domain;
use crate::id::{AgentId, FactId, SnapshotId};

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
    pub fn genesis(agent: AgentId) -> Self {
        let facts = MapBuilder::new().finish();
        Self { version: 1, agent, parent: None, number: 0, facts, label: None }
    }

    /// The snapshot that follows this one, with other facts.
    pub fn next(&self, facts: &BTreeMap<FactKey, FactId>) -> Self {
        Self {
            version: 1,
            agent: self.agent.clone(),
            parent: Some(self.id()),
            number: self.number.saturating_add(1),
            facts: map_of(facts),
            label: None,
        }
    }

    /// The facts, by key.
    ///
    /// # Errors
    /// [`DecodeFault::Value`] where a key or an id is not of its form.
    pub fn fact_ids(&self) -> Result<BTreeMap<FactKey, FactId>, DecodeError> {
        let mut facts = BTreeMap::new();
        let mut decoder = Decoder::new(self.facts.as_bytes(), Profile::CONTROL);
        let fault = decoder.fault(DecodeFault::Value);
        decoder.text_map(|key, decoder| {
            facts.insert(FactKey::new(key).ok_or(fault)?, FactId::take(decoder)?);
            Ok(())
        })?;
        decoder.finish()?;
        Ok(facts)
    }

    /// The canonical bytes.
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
    pub fn id(&self) -> SnapshotId {
        SnapshotId::from_bytes(Domain::SNAPSHOT.hash(&[&self.to_bytes()]))
    }
}

fn map_of(facts: &BTreeMap<FactKey, FactId>) -> Canonical {
    let mut sorted: Vec<(&FactKey, &FactId)> = facts.iter().collect();
    // Canonical order is by the encoded key: shorter ones first.
    sorted.sort_by_key(|(key, _)| (key.as_str().len(), *key));
    let mut encoder = Encoder::with_capacity(sorted.len().saturating_mul(64));
    encoder.map(sorted.len());
    for (key, id) in sorted {
        encoder.text(key.as_str());
        encoder.bytes(id.as_bytes());
    }
    Canonical::from_encoder(encoder)
}
