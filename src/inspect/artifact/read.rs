//! Results, as log and vault have them. The log is read from its end, and no further than needed.

use std::collections::BTreeSet;

use syscap_format::{
    AgentId, Body, Canonical, Commitment, Label, Outcome, Reason, Record, ResultHash, Seq,
    SessionPhase, Status, ToolId, TxOutcome, UnixMillis, VaultEntry,
};
use syscap_kernel::{Next, Store, StoreError, record_at, vault_entry};

use crate::inspect::artifact::short::{Answered, Cut, Short};

/// Most results that are looked up at once: as many as a session can refer to.
pub const LAST_MAX: usize = 1_024;
/// How many records are read before they are looked at.
const CHUNK: u64 = 512;

/// Which results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Which {
    /// Results of one agent.
    pub agent: Option<AgentId>,
    /// Results of one session.
    pub session: Option<Seq>,
    /// The last so many, at most [`LAST_MAX`].
    pub last: usize,
    /// How much of each is shown.
    pub cut: Cut,
}

impl Default for Which {
    /// The last 20 of all.
    fn default() -> Self {
        Self { agent: None, session: None, last: 20, cut: Cut::default() }
    }
}

/// A call's result or change, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Artifact {
    /// The record of its outcome: what a `$ref` names.
    pub record: Seq,
    /// The record of its intent.
    pub intent: Seq,
    /// When it ended, in kernel time.
    pub time: UnixMillis,
    /// The agent.
    pub agent: Option<AgentId>,
    /// The session that it was delivered to.
    pub session: Option<Seq>,
    /// True if a call of that session can refer to it: it is a result, and the session is open.
    pub referable: bool,
    /// The tool.
    pub tool: Option<ToolId>,
    /// The status: a result or an error.
    pub status: Status,
    /// Why there is none.
    pub reason: Option<Reason>,
    /// The effect's outcome.
    pub tx: TxOutcome,
    /// The result's own label, joined with the label of everything that the session was given
    /// before, since the arguments may come from that.
    pub label: Label,
    /// The salted commitment to what was delivered.
    pub digest: Option<ResultHash>,
    /// The vault's part of it.
    pub kept: Kept<Short>,
}

/// The vault's part of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept<T> {
    /// The data that the record commits to.
    There(T),
    /// The data was erased.
    Erased,
    /// Something else than the record commits to: it is not shown.
    Altered,
}

/// A result with all that was delivered.
#[derive(Clone, Debug)]
pub struct Whole {
    /// It in short.
    pub artifact: Artifact,
    /// The delivered result or error object.
    pub delivered: Option<Canonical>,
}

/// The newest results, the newest first.
#[derive(Clone, Debug, Default)]
pub struct Latest {
    /// The results.
    pub artifacts: Vec<Artifact>,
    /// Records on the way that can't be read.
    pub unreadable: u64,
}

/// The newest results of a log that ends with the record `head`.
pub fn latest(store: &mut dyn Store, head: Seq, which: &Which) -> Result<Latest, StoreError> {
    let mut walk = Walk::new(head, which.clone());
    while walk.step(store)? == Next::More {}
    Ok(walk.found)
}

/// The result under a record; `None` where none stands there.
pub fn whole(store: &mut dyn Store, record: Seq) -> Result<Option<Whole>, StoreError> {
    let Some(bytes) = record_at(store, record)? else { return Ok(None) };
    let decoded = Record::decode(&bytes).map_err(|_| StoreError::Damaged)?;
    let Body::Outcome(outcome) = decoded.body else { return Ok(None) };
    let cut = Cut::default();
    // Whether it can be referred to is a question of what came later, which nobody asks here.
    let (artifact, delivered) = shown(store, record, decoded.time, &outcome, false, cut)?;
    Ok(Some(Whole { artifact, delivered }))
}

/// Goes along a log from its end, a chunk at a time: between two of them others have the store.
pub(crate) struct Walk {
    which: Which,
    /// The last record that was not looked at yet.
    next: Option<Seq>,
    /// Sessions that were closed later, and whether all were, by a boot.
    closed: BTreeSet<Seq>,
    booted: bool,
    pub(crate) found: Latest,
}

impl Walk {
    pub(crate) fn new(head: Seq, which: Which) -> Self {
        let (closed, found) = (BTreeSet::new(), Latest::default());
        Self { which, next: Some(head), closed, booted: false, found }
    }

    /// Looks at one chunk; whether there is more to look at.
    pub(crate) fn step(&mut self, store: &mut dyn Store) -> Result<Next, StoreError> {
        let Some(last) = self.next.filter(|_| !self.is_full()) else { return Ok(Next::Enough) };
        let first = Seq::new(last.get().saturating_sub(CHUNK.saturating_sub(1)));
        let mut chunk = Vec::new();
        store.records(first, &mut |seq, bytes| {
            if seq <= last {
                chunk.push((seq, bytes.to_vec()));
            }
            if seq < last { Next::More } else { Next::Enough }
        })?;
        for (seq, bytes) in chunk.iter().rev() {
            match Record::decode(bytes) {
                Ok(record) => self.take(store, *seq, record)?,
                Err(_) => self.found.unreadable = self.found.unreadable.saturating_add(1),
            }
            if self.is_full() || self.which.session.is_some_and(|session| *seq <= session) {
                return Ok(Next::Enough);
            }
        }
        self.next = first.get().checked_sub(1).map(Seq::new);
        Ok(if self.next.is_some() { Next::More } else { Next::Enough })
    }

    fn is_full(&self) -> bool {
        self.found.artifacts.len() >= self.which.last.min(LAST_MAX)
    }

    fn take(&mut self, store: &mut dyn Store, seq: Seq, record: Record) -> Result<(), StoreError> {
        let outcome = match record.body {
            Body::Boot(_) => {
                self.booted = true;
                return Ok(());
            }
            Body::Session(change) | Body::SessionAlone(change) => {
                let ended = change.session.filter(|_| change.phase != SessionPhase::Open);
                self.closed.extend(ended);
                return Ok(());
            }
            Body::Outcome(outcome) => outcome,
            _ => return Ok(()),
        };
        let call = &outcome.call;
        let is_meant = self.which.agent.as_ref().is_none_or(|a| call.agent_id.as_ref() == Some(a))
            && self.which.session.is_none_or(|session| call.session == Some(session));
        let changed = matches!(outcome.tx, TxOutcome::Committed | TxOutcome::Unknown);
        if !is_meant || !(outcome.is_of_the_tool() || changed) {
            return Ok(());
        }
        let open = |session: Seq| !self.booted && !self.closed.contains(&session);
        let referable = outcome.is_of_the_tool() && call.session.is_some_and(open);
        let (artifact, _) = shown(store, seq, record.time, &outcome, referable, self.which.cut)?;
        self.found.artifacts.push(artifact);
        Ok(())
    }
}

/// A result, as its records and the vault have it.
fn shown(
    store: &mut dyn Store,
    record: Seq,
    time: UnixMillis,
    outcome: &Outcome,
    referable: bool,
    cut: Cut,
) -> Result<(Artifact, Option<Canonical>), StoreError> {
    let Outcome { call, intent, status, tx, reason, .. } = outcome;
    let entry = vault_entry(store, *intent, record)?;
    let delivered = committed(&entry, call.result_hash, *status);
    let kept = match (&delivered, call.result_hash) {
        (Kept::There(delivered), Some(digest)) => {
            let tool = call.tool_id.clone();
            let answered = Answered { record, intent: Some(*intent), tool };
            Kept::There(Short::new(answered, *reason, *tx, digest, delivered, cut))
        }
        (Kept::Altered, _) => Kept::Altered,
        _ => Kept::Erased,
    };
    let artifact = Artifact {
        record,
        intent: *intent,
        time,
        agent: call.agent_id.clone(),
        session: call.session,
        referable: referable && matches!(kept, Kept::There(_)),
        tool: call.tool_id.clone(),
        status: *status,
        reason: *reason,
        tx: *tx,
        label: Label::delivered(given_before(store, *intent)?, outcome.label),
        digest: call.result_hash,
        kept,
    };
    let delivered = match delivered {
        Kept::There(delivered) => Some(delivered),
        Kept::Erased | Kept::Altered => None,
    };
    Ok((artifact, delivered))
}

fn committed(entry: &VaultEntry, hash: Option<ResultHash>, status: Status) -> Kept<Canonical> {
    let (Some(hash), Some(_), Some(_)) = (hash, &entry.salts, &entry.result) else {
        return Kept::Erased;
    };
    entry.committed(Commitment::Result(hash, status)).map_or(Kept::Altered, Kept::There)
}

/// The label of everything that the session was given before the call.
fn given_before(store: &mut dyn Store, intent: Seq) -> Result<Label, StoreError> {
    let bytes = record_at(store, intent)?.ok_or(StoreError::Damaged)?;
    match Record::decode(&bytes).map_err(|_| StoreError::Damaged)?.body {
        Body::Intent(intent) => Ok(intent.label),
        _ => Err(StoreError::Damaged),
    }
}
