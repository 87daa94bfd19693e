//! Answers to questions about documents.

use syscap_format::AgentId;
use syscap_policy::{Scenario, semantics::Outcome};

/// How many nodes a search visits where the caller has no other wish: seconds at most. A place
/// counts one, and one more for every 16 constraints that are open there.
pub const NODES_DEFAULT: u64 = 1_000_000;

/// The answer to whether something holds of every scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding<T> {
    /// It does. The search was complete.
    Holds {
        /// Nodes that were visited.
        nodes: u64,
    },
    /// It does not, and this shows it.
    Fails(T),
    /// Not everything was looked at: the nodes ran out, or values came together in too many ways.
    Unknown {
        /// Nodes that were visited.
        nodes: u64,
    },
}

/// A scenario of which two documents say different things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The scenario.
    pub scenario: Scenario,
    /// The first document's outcome.
    pub first: Outcome,
    /// The second document's outcome.
    pub second: Outcome,
}

/// A scenario and what comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The scenario.
    pub scenario: Scenario,
    /// The document's outcome.
    pub outcome: Outcome,
}

/// The agents' possible verdicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// One of them. The document can't tell the others from it.
    pub agent: AgentId,
    /// Decides if the shown verdict is the mildest possible.
    pub proof: Proof,
    /// A scenario with the mildest verdict that was found.
    pub witness: Witness,
}

/// Decides if a search was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It did.
    Exact,
    /// It did not.
    Unknown,
}
