//! A call's origin, and the fields that the kernel filled in.

use syscap_format::{CallFields, Filled, Intent, PROVENANCE_INPUTS_MAX, TRACE_BYTES_MAX};

use super::{Entry, Fault, Ledger};

impl Ledger {
    /// Its inputs are records before this one. If the caller stated nothing, the kernel has put its
    /// own time, and nothing else.
    pub(super) fn came_from(&self, entry: &mut Entry<'_>, call: &CallFields) {
        let Some(from) = &call.provenance else {
            return;
        };
        let trace = from.trace.as_ref().map_or(0, |trace| trace.len());
        let known = from.inputs.iter().all(|input| *input < entry.seq);
        let fits = from.inputs.len() <= PROVENANCE_INPUTS_MAX && trace <= TRACE_BYTES_MAX;
        // A change of a state is no call: its inputs are the host's.
        let silent = from.trace.is_none() && (from.inputs.is_empty() || call.call_hash.is_none());
        let own = from.time == Some(entry.time) && silent;
        entry.expect(known && fits && (from.claimed.is_some() || own), Fault::Provenance);
    }

    /// A snapshot that was filled in is the agent's head.
    pub(super) fn named_head(&self, entry: &mut Entry<'_>, intent: &Intent) {
        let call = &intent.call;
        let heads = call.agent_id.as_ref().and_then(|agent| self.heads.get(agent));
        let head = heads.is_none_or(|heads| call.state_snapshot_id == Some(heads.head()));
        let known = call.state_snapshot_id.zip(heads).is_some_and(|(id, heads)| heads.knows(id));
        // One that is not the agent's at all is a fault of its own.
        let filled = intent.filled.has(Filled::SNAPSHOT);
        entry.expect(!filled || !known || head, Fault::IntentForm);
    }
}
