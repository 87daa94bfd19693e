//! An agent's state, as it is on record.

use syscap_format::{
    AgentId, Canonical, Fact, Facts, Reason, Refused, Seq, Snapshot, SnapshotId, field::shape,
};
use syscap_kernel::Kernel;

use crate::Error;
use crate::server::Holding;
use crate::transport::limits::VIEW_MAX;

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

shape! {
    /// One agent's state.
    pub struct AgentState {
        /// The agent.
        1 => pub agent: AgentId,
        /// Its head snapshot.
        2 => pub snapshot: SnapshotId,
        /// How many changes there have been.
        3 => pub number: u64,
        /// Key and value, sorted by key; `None` where the value was erased.
        4 => pub facts: Vec<(String, Option<Canonical>)>,
    }
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

impl Holding {
    /// All of them, where they fit an answer.
    pub(crate) fn states(&self) -> Result<Vec<AgentState>, Error> {
        let all = self.look(states);
        if all.len() > VIEW_MAX {
            return Err(Refused::new(Reason::TooLarge).field("states").into());
        }
        Ok(all)
    }
}
