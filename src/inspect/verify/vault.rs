//! The vault's rows, held against what their records commit to.
//!
//! The log is sound without them: a row can be erased. But one that is there and is not what its
//! record says was changed by somebody.

use syscap_format::{Body, CallFields, Commitment, Record, Seq, Status, TextHash, VaultEntry};
use syscap_kernel::{Next, Store, StoreError, vault_entry};

use crate::{Error, Inspection};

/// Most rows that are named: the first.
pub const ALTERED_MAX: usize = 256;
/// How many records are read before their rows are looked at.
const CHUNK: usize = 512;

/// The vault's part of the data that a log commits to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VaultReport {
    /// Arguments, results and texts that are what their records commit to.
    pub whole: u64,
    /// Entries that are missing: erased, or never kept.
    pub absent: u64,
    /// Entries that differ from the log: the first [`ALTERED_MAX`], in the order of their records.
    pub altered: Vec<Altered>,
    /// How many are otherwise.
    pub altered_in_all: u64,
}

/// Something that is otherwise than its record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Altered {
    /// The record that the row lies beside.
    pub seq: Seq,
    /// The part of the record's data.
    pub part: Part,
}

/// A part of a record's data in the vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The arguments of a call, or the changes of a state.
    Arguments,
    /// A result, or an error.
    Result,
    /// A text that somebody wrote, or the name of a thing that a call was to touch.
    Text,
    /// The row itself: it is of no known form, or its record commits to nothing.
    Row,
}

impl Part {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arguments => "arguments",
            Self::Result => "result",
            Self::Text => "text",
            Self::Row => "row",
        }
    }
}

/// Holds every row of the vault that lies beside a record against that record, up to the one named.
/// Another process may write the log.
///
/// # Errors
/// [`StoreError`], also where a record can't be read.
pub fn verify_vault(store: &mut dyn Store, end: Seq) -> Result<VaultReport, StoreError> {
    let mut report = VaultReport::default();
    let mut from = Seq::GENESIS;
    loop {
        let mut chunk = Vec::new();
        store.records(from, &mut |seq, bytes| {
            chunk.push((seq, bytes.to_vec()));
            if chunk.len() < CHUNK { Next::More } else { Next::Enough }
        })?;
        for (seq, bytes) in &chunk {
            if *seq > end {
                return Ok(report);
            }
            let record = Record::decode(bytes).map_err(|_| StoreError::Damaged)?;
            report.look(*seq, &record.body, store)?;
        }
        match chunk.last() {
            Some((last, _)) => from = last.next(),
            None => return Ok(report),
        }
    }
}

impl Inspection {
    /// Compares the vault with the log, up to the head of this inspection.
    ///
    /// # Errors
    /// [`Error::Home`].
    pub fn verify_vault(&self) -> Result<VaultReport, Error> {
        let mut store = self.store();
        verify_vault(&mut **store, self.kernel().head().seq).map_err(Error::Home)
    }
}

impl VaultReport {
    fn look(&mut self, seq: Seq, body: &Body, store: &mut dyn Store) -> Result<(), StoreError> {
        let texts = texts(body);
        let (call, salted_by, status) = match body {
            Body::Intent(intent) => (Some(&intent.call), seq, None),
            Body::Outcome(outcome) => (Some(&outcome.call), outcome.intent, Some(outcome.status)),
            Body::Refusal(refusal) => (Some(&refusal.call), seq, Some(Status::Error)),
            Body::Ask(ask) => (Some(&ask.call), seq, Some(Status::Error)),
            Body::State(change) => (Some(&change.call), seq, None),
            // Its row has the salts, and its result lies under the first outcome.
            Body::Repeat(_) => (None, seq, None),
            _ => (None, seq, None),
        };
        let row = store.vault(seq)?;
        let own = row.as_deref().map(VaultEntry::from_row);
        if own == Some(None) {
            self.alter(seq, Part::Row);
            return Ok(());
        }
        let entry = match own.flatten() {
            Some(whole) if salted_by == seq && whole.pieces.is_empty() => whole,
            None if salted_by == seq => VaultEntry::default(),
            _ => vault_entry(store, salted_by, seq)?,
        };
        if row.is_some() && call.is_none() && texts.is_empty() && !matches!(body, Body::Repeat(_)) {
            self.alter(seq, Part::Row);
        }
        if let Some(call) = call {
            // What an outcome says of the arguments its intent says, too, and they lie there.
            let of_arguments = arguments(body, call).filter(|_| salted_by == seq);
            let sides = [
                (Part::Arguments, of_arguments, entry.args.is_some()),
                (Part::Result, result(call, status), entry.result.is_some()),
            ];
            for (part, commitment, is_there) in sides {
                match commitment {
                    Some(_) if !is_there || entry.salts.is_none() => self.miss(),
                    Some(commitment) if entry.committed(commitment).is_some() => self.find(),
                    Some(_) => self.alter(seq, part),
                    // The arguments that an entry has of an outcome are its intent's.
                    None if is_there && salted_by == seq => self.alter(seq, part),
                    None => {}
                }
            }
        }
        self.read(seq, &texts, &entry);
        Ok(())
    }

    fn read(&mut self, seq: Seq, committed: &[TextHash], entry: &VaultEntry) {
        let others = entry.texts.iter().filter(|text| !committed.contains(&text.hash())).count();
        (0..others).for_each(|_| self.alter(seq, Part::Text));
        for hash in committed {
            match entry.text(hash) {
                Some(_) => self.find(),
                None => self.miss(),
            }
        }
    }

    fn find(&mut self) {
        self.whole = self.whole.saturating_add(1);
    }

    fn miss(&mut self) {
        self.absent = self.absent.saturating_add(1);
    }

    fn alter(&mut self, seq: Seq, part: Part) {
        self.altered_in_all = self.altered_in_all.saturating_add(1);
        if self.altered.len() < ALTERED_MAX {
            self.altered.push(Altered { seq, part });
        }
    }
}

fn arguments<'r>(body: &Body, call: &'r CallFields) -> Option<Commitment<'r>> {
    let hash = call.args_hash?;
    if matches!(body, Body::State(_)) {
        return Some(Commitment::Changes(hash));
    }
    Some(Commitment::Arguments(hash, call.tool_id.as_ref()?, call.manifest.as_ref()?))
}

fn result(call: &CallFields, status: Option<Status>) -> Option<Commitment<'static>> {
    call.result_hash.zip(status).map(|(hash, status)| Commitment::Result(hash, status))
}

/// The texts that a record commits to.
fn texts(body: &Body) -> Vec<TextHash> {
    match body {
        Body::Ask(ask) => {
            let seen = ask.preconditions.iter().flat_map(|one| [Some(one.subject), one.seen]);
            ask.resources.iter().copied().chain(seen.flatten()).collect()
        }
        Body::Session(change) | Body::SessionAlone(change) => {
            change.principal.into_iter().collect()
        }
        Body::Input(input) => [input.text].into(),
        _ => body.cause().into_iter().collect(),
    }
}
