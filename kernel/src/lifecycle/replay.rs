//! Replay: the state is derived from a log again, when a home is opened.

use alloc::vec::Vec;

use crate::approvals::index::Requests;
use crate::authority::signatures::Past;
use crate::halt::{Foreign, Halt};
use crate::lifecycle::boot::{Anchor, Parts};
use crate::machine::Kernel;
use crate::run::pending::Pending;
use crate::state::apply::Objects;
use crate::state::facts;
use crate::state::fold::State;
use crate::store::{Next, Store, leaf_at};
use syscap_format::{
    Body, Head, Leaf, Object, ObjectId, Record, RecordError, Seq, leaf, self_test,
};

/// How many records are read before they are folded in: the store can't be asked for objects
/// while it reads.
const CHUNK: usize = 1_024;

impl Kernel {
    /// Folds the log of a store. Verdicts and amounts are taken as recorded: nothing is decided
    /// again. Every signature is verified before what it covers is folded in.
    ///
    /// # Errors
    /// [`Halt`]: the log is damaged, forged, of another home or of a newer version, or contradicts
    /// itself.
    pub fn open(store: &mut dyn Store, parts: Parts, anchor: &Anchor) -> Result<Self, Halt> {
        self_test()?;
        let mut state: Option<State> = None;
        let mut missing = anchor.keys.clone();
        loop {
            let from = state.as_ref().map_or(Seq::GENESIS, |state| state.head.seq.next());
            let chunk = read_chunk(store, from)?;
            if chunk.is_empty() {
                break;
            }
            let mut past = FromStore { store };
            for (seq, bytes) in chunk {
                let record = decode(seq, &bytes)?;
                let leaf = leaf(&bytes);
                let state = match &mut state {
                    None => state.insert(anchored(&record, leaf, anchor)?),
                    Some(state) => {
                        state.believe(&record, &mut past)?;
                        state.apply(record.view(), leaf, &mut past)?;
                        state
                    }
                };
                if matches!(record.body, Body::Genesis(_) | Body::Key(_)) {
                    missing.retain(|(role, key)| !state.roles.holds(*role, key));
                }
            }
        }
        let state = state.ok_or(Halt::Empty)?;
        if let Some((role, key)) = missing.first().copied() {
            return Err(Halt::Foreign(Foreign::Signer { role, key }));
        }
        let head: Head = state.head;
        let facts = facts::known_facts(&state, store)?;
        let requests = Requests::read(&state, store)?;
        let mut kernel = Self::with(state, parts, Pending::after(Some(head)));
        (kernel.facts, kernel.requests) = (facts, requests);
        Ok(kernel)
    }
}

/// The state after the genesis record, if it is that of the home which was expected.
fn anchored(record: &Record, leaf: Leaf, anchor: &Anchor) -> Result<State, Halt> {
    let state = State::begin(record, leaf)?;
    match &anchor.trust {
        Some(trust) if trust.home != state.home => Err(Halt::Foreign(Foreign::Home)),
        Some(trust) if trust.roles != state.roles => Err(Halt::Foreign(Foreign::Keys)),
        _ => Ok(state),
    }
}

pub(crate) fn read_chunk(store: &mut dyn Store, from: Seq) -> Result<Vec<(Seq, Vec<u8>)>, Halt> {
    let mut chunk = Vec::new();
    store.records(from, &mut |seq, bytes| {
        chunk.push((seq, Vec::from(bytes)));
        if chunk.len() < CHUNK { Next::More } else { Next::Enough }
    })?;
    Ok(chunk)
}

pub(crate) fn decode(seq: Seq, bytes: &[u8]) -> Result<Record, Halt> {
    Record::decode(bytes).map_err(|error| match error {
        RecordError::Damaged(fault) => Halt::Damaged { seq, fault },
        RecordError::TooOld(form) => Halt::TooOld { form },
        RecordError::UnknownVersion { kind, version } => {
            Halt::UnknownVersion { seq, kind, version }
        }
        RecordError::UnknownKind(kind) => Halt::UnknownKind { seq, kind },
        RecordError::ReservedKind(kind) => Halt::Reserved { seq, name: kind.name() },
        RecordError::ReservedField(name) => Halt::Reserved { seq, name },
    })
}

/// Objects of a log that is being replayed.
pub(crate) struct FromStore<'a> {
    pub(crate) store: &'a mut dyn Store,
}

impl Objects for FromStore<'_> {
    fn find(&mut self, id: &ObjectId) -> Result<Option<Object>, Halt> {
        Ok(self.store.object(id)?)
    }
}

impl Past for FromStore<'_> {
    fn leaf(&mut self, seq: Seq) -> Result<Option<Leaf>, Halt> {
        Ok(leaf_at(self.store, seq)?)
    }
}
