//! Idempotency keys: each runs at most once in its namespace.

use alloc::{collections::BTreeMap, vec::Vec};

use super::TokenIndex;
use crate::{
    envelope::Status,
    id::{AgentId, IdempotencyKey, ResultHash, SentHash, Seq, ToolId},
    label::Label,
    obligation::Obligation,
};

/// A key in its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeySlot {
    pub(crate) agent: AgentId,
    pub(crate) tool: ToolId,
    pub(crate) key: IdempotencyKey,
}

/// What became of the first call with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyState {
    /// It has no outcome yet.
    InFlight,
    /// It has one.
    Done(Seq),
    /// What it did is not known, as this record says.
    Unknown(Seq),
}

/// The first call with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyUse {
    pub(crate) intent: Seq,
    pub(crate) sent: SentHash,
    pub(crate) token: TokenIndex,
    pub(crate) state: KeyState,
    /// What its outcome commits to.
    pub(crate) result: Option<(ResultHash, Status)>,
    /// What the policy took away from it: a repeat is told so as well.
    pub(crate) degraded: Vec<Obligation>,
    /// What its outcome carries.
    pub(crate) label: Label,
}

/// All keys that were used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys {
    used: BTreeMap<KeySlot, KeyUse>,
}

impl Keys {
    pub(crate) fn get(&self, slot: &KeySlot) -> Option<&KeyUse> {
        self.used.get(slot)
    }

    pub(crate) fn begin(&mut self, slot: KeySlot, intent: Seq, sent: SentHash, token: TokenIndex) {
        let (state, result, degraded) = (KeyState::InFlight, None, Vec::new());
        let label = Label::PUBLIC;
        self.used.insert(slot, KeyUse { intent, sent, token, state, result, degraded, label });
    }

    pub(crate) fn end(&mut self, slot: &KeySlot, state: KeyState) {
        if let Some(used) = self.used.get_mut(slot) {
            used.state = state;
        }
    }

    pub(crate) fn done(
        &mut self,
        slot: &KeySlot,
        outcome: Seq,
        result: (ResultHash, Status),
        (degraded, label): (Vec<Obligation>, Label),
    ) {
        if let Some(used) = self.used.get_mut(slot) {
            used.state = KeyState::Done(outcome);
            used.result = Some(result);
            used.degraded = degraded;
            used.label = label;
        }
    }

    /// The call did not run, so its key may be used.
    pub(crate) fn release(&mut self, slot: &KeySlot) {
        self.used.remove(slot);
    }
}
