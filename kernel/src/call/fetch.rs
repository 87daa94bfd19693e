//! Reads from the vault that a call waits for.
//!
//! The host runs them outside the kernel's lock, on a handle that commits don't wait for. All that
//! depends on the size of what is read happens here: lengths are checked before anything is read,
//! results are held against their commitments, and only the parts that the call refers to are
//! handed to the kernel. They are no larger than arguments that a caller may send.

use alloc::vec::Vec;
use core::fmt;

use crate::call::reference::Reference;
use crate::store::{Store, StoreError};
use crate::vault::vault_rows;
use syscap_format::{
    CallSalts, Canonical, Commitment, ENVELOPE_BYTES_MAX, RESULT_BYTES_MAX, Reason, Refused,
    ResultHash, Seq, Status, VaultEntry,
};

/// Most bytes of rows that the references of one call make the host read: one largest result, the
/// largest arguments of its call, and as much again for texts and framing.
const FETCHED_BYTES_MAX: usize = RESULT_BYTES_MAX + 2 * ENVELOPE_BYTES_MAX;

/// A call's needs from the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The first outcome of an idempotency key, and the salts of that call.
    Outcome(Stored),
    /// Parts of results, in the order in which the arguments refer to them.
    Parts(Vec<Part>),
    /// The texts beside a record.
    Texts(Seq),
}

/// A result that lies in the vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) intent: Seq,
    pub(crate) outcome: Seq,
    /// The commitment of its record; `None` if the record says that the result is lost.
    pub(crate) result: Option<(ResultHash, Status)>,
}

/// A part of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) of: Stored,
    pub(crate) path: Canonical,
}

/// The data read.
pub(crate) enum Found {
    /// The salts of the first call, and its result as delivered, unless they were erased.
    Outcome { salts: Option<CallSalts>, delivered: Option<Canonical> },
    /// The parts, in their order.
    Parts(Result<Vec<Canonical>, Refused>),
    /// Texts only.
    Texts(VaultEntry),
}

/// A read of the vault, for the host to run.
#[must_use = "a call waits for it"]
pub struct Fetching {
    pub(crate) wanted: Wanted,
    /// The last record that is known to have erased rows: what was read before another one counts
    /// as unread.
    pub(crate) since: Seq,
}

/// The result of a [`Fetching`]. Only a `Fetching` makes one.
#[must_use = "a call waits for it"]
pub struct Fetched {
    pub(crate) wanted: Wanted,
    pub(crate) since: Seq,
    pub(crate) found: Found,
}

impl Fetching {
    /// Reads. For references that is at most 6 MiB of rows, and no row whose length would lead
    /// beyond that.
    pub fn run(self, store: &mut dyn Store) -> Result<Fetched, StoreError> {
        let Self { wanted, since } = self;
        let found = match &wanted {
            Wanted::Outcome(stored) => {
                let entry = vault_rows(store, stored.intent, stored.outcome)?;
                Found::Outcome { salts: entry.salts, delivered: stored.committed(&entry) }
            }
            Wanted::Parts(parts) => Found::Parts(read_parts(parts, store)?),
            Wanted::Texts(seq) => {
                let VaultEntry { texts, .. } = vault_rows(store, *seq, *seq)?;
                Found::Texts(VaultEntry { texts, ..VaultEntry::default() })
            }
        };
        Ok(Fetched { wanted, since, found })
    }
}

impl Stored {
    /// The result, where the vault has the one that is committed to.
    fn committed(&self, entry: &VaultEntry) -> Option<Canonical> {
        let (hash, status) = self.result?;
        entry.committed(Commitment::Result(hash, status))
    }

    /// The same of a tool that failed by its own word: what it gave stands in the error object.
    fn failed(&self, entry: &VaultEntry) -> Option<Canonical> {
        let (hash, _) = self.result?;
        entry.committed(Commitment::Result(hash, Status::Error))
    }
}

/// Reads each result once and takes the parts out of it.
fn read_parts(
    parts: &[Part],
    store: &mut dyn Store,
) -> Result<Result<Vec<Canonical>, Refused>, StoreError> {
    let mut results: Vec<Stored> = Vec::new();
    for part in parts {
        if !results.contains(&part.of) {
            results.push(part.of);
        }
    }
    let mut bytes = 0_usize;
    for Stored { intent, outcome, .. } in &results {
        for row in [intent, outcome] {
            bytes = bytes.saturating_add(store.vault_len(*row)?.unwrap_or(0));
        }
    }
    if bytes > FETCHED_BYTES_MAX {
        return Ok(Err(too_large(FETCHED_BYTES_MAX)));
    }
    let mut picked: Vec<Option<Result<Canonical, Refused>>> = Vec::new();
    picked.resize_with(parts.len(), || None);
    let mut kept = 0_usize;
    for result in &results {
        let entry = vault_rows(store, result.intent, result.outcome)?;
        let Some(delivered) = result.committed(&entry).or_else(|| result.failed(&entry)) else {
            return Ok(Err(Refused::new(Reason::ReferenceErased).field("$ref")));
        };
        for (part, place) in parts.iter().zip(&mut picked) {
            if part.of != *result {
                continue;
            }
            let reference = Reference { record: result.outcome, path: part.path.item() };
            let found = reference.pick(delivered.item());
            let len = found.as_ref().map_or(0, |part| part.as_bytes().len());
            kept = kept.saturating_add(len);
            // Stops before sixteen large parts are put together.
            if kept > ENVELOPE_BYTES_MAX {
                return Ok(Err(too_large(ENVELOPE_BYTES_MAX)));
            }
            *place = Some(found);
        }
    }
    Ok(picked.into_iter().flatten().collect())
}

fn too_large(most: usize) -> Refused {
    let refused = Refused::new(Reason::TooLarge).field("$ref");
    refused.allowed(&format_args!("at most {most} bytes in all"))
}

impl fmt::Debug for Fetching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetching(..)")
    }
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetched(..)")
    }
}
