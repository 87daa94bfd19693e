//! An agent's state, as it is on record.

use syscap_format::{AgentId, Canonical, Fact, Facts, Seq, Snapshot, SnapshotId, field::shape};
use syscap_kernel::Kernel;

shape! {
    /// A change of an agent's state that is on record.
    #[derive(Copy)]
    pub struct Changed {
        /// The agent's head from here on.
        1 => pub snapshot: SnapshotId,
        /// The record.
        2 => pub record: Seq,
    }
}

/// One agent's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentState {
    /// The agent.
    pub agent: AgentId,
    /// Its head snapshot.
    pub snapshot: SnapshotId,
    /// How many changes there have been.
    pub number: u64,
    /// Key and value, sorted by key; `None` where the value was erased.
    pub facts: Vec<(String, Option<Canonical>)>,
}

/// The states that a kernel knows.
pub(crate) fn states(kernel: &Kernel) -> Vec<AgentState> {
    let value = |fact: Fact<'_>| match fact {
        Fact::Known(value) => Some(Canonical::from(value)),
        Fact::Missing | Fact::Erased => None,
    };
    let state = |(agent, head, facts): (&AgentId, &Snapshot, &Facts)| AgentState {
        agent: agent.clone(),
        snapshot: head.id(),
        number: head.number,
        facts: facts.iter().map(|(key, fact)| (key.to_string(), value(fact))).collect(),
    };
    kernel.states().map(state).collect()
}
