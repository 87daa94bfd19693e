//! Records of the agents' states, and of what users say to them.

use super::CallFields;
use alloc::vec::Vec;

use crate::facts::FactKey;
use crate::field::shape;
use crate::id::{AgentId, Seq, SnapshotId, TextHash};
use crate::label::Label;
use crate::provenance::Source;

shape! {
    /// An agent's state changed: another snapshot is its head. In the call's fields,
    /// `state_snapshot_id` is the head before, `args_hash` commits to the changes, and `tool_id`,
    /// `result_hash` and `call_hash` are null. The values lie in the vault.
    pub struct StateChange {
        .. /// Whose state, under which token and policy, and what it cost.
        pub call: CallFields,
        /// The head from here on.
        30 => pub snapshot: SnapshotId,
        /// Its number.
        31 => pub number: u64,
        /// Who wrote.
        32 => pub writer: Source,
        /// The keys that were set, sorted.
        33 => pub set: Vec<FactKey>,
        /// The keys that were taken away, sorted.
        34 => pub removed: Vec<FactKey>,
    }
}

shape! {
    /// A user's message to an agent, as the host reports it. A longer text than
    /// [`TEXT_BYTES_MAX`](crate::limits::TEXT_BYTES_MAX) bytes is several of them, one after the
    /// other.
    pub struct Input {
        /// The session that it was said to.
        10 => pub session: Seq,
        /// Its agent.
        11 => pub agent: AgentId,
        /// Commitment to the text, which lies in the vault.
        12 => pub text: TextHash,
        /// The message's label.
        13 => pub label: Label,
    }
}
