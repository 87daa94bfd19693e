//! An agent's state: proposing changes, and looking at the head.

use syscap_format::{
    cbor::Canonical,
    facts::{Fact, Facts},
    id::{AgentId, Seq, SnapshotId},
    provenance::Source,
    snapshot::Snapshot,
};
use syscap_kernel::{
    halt::Halt,
    kernel::{Ack, Event, Kernel, Proposal},
};

use crate::{args::Args, core::Answer, error::Error, runtime::Runtime, session::Session};

/// A change of an agent's state that is on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The agent's head from here on.
    pub snapshot: SnapshotId,
    /// The record.
    pub record: Seq,
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

impl Session {
    /// Proposes `goal.*` entries of the agent's state, whole or not at all: a value sets a key,
    /// null takes it away. It pays one of `calls`; from then on calls are decided on the new
    /// head.
    ///
    /// # Errors
    /// [`Error::Refused`], with the reason on record; else as [`Session::call`].
    pub fn propose(&self, changes: Args) -> Result<Changed, Error> {
        self.change(self.source(), Vec::new(), changes.finish(), None)
    }

    /// The same, made from a head that must still be the head.
    ///
    /// # Errors
    /// As [`Session::propose`].
    pub fn propose_from(&self, base: SnapshotId, changes: Args) -> Result<Changed, Error> {
        self.change(self.source(), Vec::new(), changes.finish(), Some(base))
    }

    pub(crate) fn change(
        &self,
        writer: Source,
        inputs: Vec<Seq>,
        changes: Canonical,
        base: Option<SnapshotId>,
    ) -> Result<Changed, Error> {
        let (session, salts) = (self.number(), self.core.salts.draw()?);
        let answer = self.core.request(|ticket| {
            let proposal = Proposal { ticket, session, writer, inputs, base, changes, salts };
            Event::Propose(Box::new(proposal))
        })?;
        match answer {
            Answer::Ack(Ok(Ack::State(snapshot, record))) => Ok(Changed { snapshot, record }),
            Answer::Ack(Err(refused)) => Err(Error::Refused(refused)),
            _ => Err(Error::Halted(Halt::Halted)),
        }
    }
}

impl Runtime {
    /// Writes to the state of a session's agent in somebody's name: a user's `goal.*`, a tool's or
    /// an encoder's `fact.*`. This is the host's word, so agents must not reach it; `inputs` are
    /// records of results released to the session, from which the values come.
    ///
    /// # Errors
    /// As [`Session::propose`].
    pub fn observe(
        &self,
        session: &Session,
        writer: Source,
        inputs: &[Seq],
        changes: Args,
    ) -> Result<Changed, Error> {
        self.observe_from(session, writer, inputs, None, changes)
    }

    /// The same, made from a head that must still be the head, where one is given.
    ///
    /// # Errors
    /// As [`Session::propose`].
    pub fn observe_from(
        &self,
        session: &Session,
        writer: Source,
        inputs: &[Seq],
        base: Option<SnapshotId>,
        changes: Args,
    ) -> Result<Changed, Error> {
        session.change(writer, inputs.to_vec(), changes.finish(), base)
    }

    /// The states of all agents that have one.
    #[must_use]
    pub fn states(&self) -> Vec<AgentState> {
        self.look(states)
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
