//! Idempotency keys: each runs at most once in its namespace.

use alloc::{collections::BTreeMap, vec::Vec};

use crate::authority::tokens::TokenIndex;
use syscap_format::{
    AgentId, IdempotencyKey, Label, Obligation, Recovered, ResultHash, SentHash, Seq, Status,
    ToolId, UnixMillis,
};

/// A key in its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeySlot {
    pub(crate) agent: AgentId,
    pub(crate) tool: ToolId,
    pub(crate) key: IdempotencyKey,
}

/// The state of the first call with an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyState {
    /// It has no outcome yet.
    InFlight,
    /// It has one; or it is known to be done, by that record, and its result is lost.
    Done(Seq),
    /// Its effect is unknown, as this record says.
    Unknown(Seq),
}

/// The first call with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyUse {
    pub(crate) intent: Seq,
    pub(crate) sent: SentHash,
    pub(crate) token: TokenIndex,
    /// From then on it is not answered any more.
    pub(crate) until: UnixMillis,
    pub(crate) state: KeyState,
    /// The result hash and status of its outcome.
    pub(crate) result: Option<(ResultHash, Status)>,
    /// The obligations by which the policy degraded it: a repeat reports them as well.
    pub(crate) degraded: Vec<Obligation>,
    /// The label of its intent.
    pub(crate) given: Label,
    /// The label of its outcome.
    pub(crate) label: Label,
}

impl KeyUse {
    /// The label of its result, for a session that repeats it.
    pub(crate) fn delivered(&self) -> Label {
        Label::delivered(self.given, self.label)
    }

    fn is_kept(&self, now: Moment) -> bool {
        let over = now.time >= self.until && now.unconfirmed.is_none_or(|boot| self.intent >= boot);
        !matches!(self.state, KeyState::Done(_)) || !over
    }
}

/// The time, and the first record whose age is known: the clock leapt before it, and no operator
/// has confirmed the leap.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) time: UnixMillis,
    pub(crate) unconfirmed: Option<Seq>,
}

/// All keys that were used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys {
    used: BTreeMap<KeySlot, KeyUse>,
}

impl Keys {
    /// The first call with a key, as long as it is kept. One whose end is not known is kept for
    /// ever: to run it again could double what it did.
    pub(crate) fn get(&self, slot: &KeySlot, now: Moment) -> Option<&KeyUse> {
        self.used.get(slot).filter(|used| used.is_kept(now))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&KeySlot, &KeyUse)> {
        self.used.iter()
    }

    pub(crate) fn begin(&mut self, slot: KeySlot, used: KeyUse) {
        self.used.insert(slot, used);
    }

    /// Drops the keys that are not kept any more.
    pub(crate) fn forget(&mut self, now: Moment) {
        self.used.retain(|_, used| used.is_kept(now));
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
        hash: ResultHash,
        status: Status,
        degraded: Vec<Obligation>,
        label: Label,
    ) {
        if let Some(used) = self.used.get_mut(slot) {
            used.state = KeyState::Done(outcome);
            used.result = Some((hash, status));
            used.degraded = degraded;
            used.label = label;
        }
    }

    /// An operator, or a late report, has said what became of a call whose end was not known.
    pub(crate) fn resolve(&mut self, intent: Seq, verdict: Recovered, said: Seq) {
        let is_it =
            |used: &KeyUse| used.intent == intent && matches!(used.state, KeyState::Unknown(_));
        let slot = self.used.iter().find(|(_, used)| is_it(used));
        let Some(slot) = slot.map(|(slot, _)| slot.clone()) else {
            return;
        };
        match verdict {
            Recovered::NotDone => self.release(&slot),
            Recovered::Done => self.end(&slot, KeyState::Done(said)),
            Recovered::Unknown => {}
        }
    }

    /// The call did not run, so its key may be used.
    pub(crate) fn release(&mut self, slot: &KeySlot) {
        self.used.remove(slot);
    }
}
