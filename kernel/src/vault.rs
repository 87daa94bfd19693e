//! The vault's data of a call: read from the rows beside its records.

use alloc::vec::Vec;

use crate::call::reference::Reference;
use crate::store::{Store, StoreError};
use syscap_format::{ArgsPiece, Canonical, ENVELOPE_BYTES_MAX, Profile, Seq, VaultEntry};

/// The vault's data of a call: salts and arguments under `first`, the result and the data written
/// beside it under `outcome`. Parts of results that the arguments refer to are put in; where such a
/// result is erased, so are they. A row that is not of a form that this version reads counts as
/// erased: what it held is held against its commitment anyway.
pub fn vault_entry(
    store: &mut dyn Store,
    first: Seq,
    outcome: Seq,
) -> Result<VaultEntry, StoreError> {
    let mut entry = vault_rows(store, first, outcome)?;
    let pieces = core::mem::take(&mut entry.pieces);
    if !pieces.is_empty() {
        entry.args = join(store, &pieces)?;
    }
    Ok(entry)
}

/// The same, of these two rows alone: arguments that are in pieces are left so.
pub(crate) fn vault_rows(
    store: &mut dyn Store,
    first: Seq,
    outcome: Seq,
) -> Result<VaultEntry, StoreError> {
    let read = |row: Option<Vec<u8>>| row.and_then(|row| VaultEntry::from_row(&row));
    let mut entry = read(store.vault(first)?).unwrap_or_default();
    if outcome != first {
        let after = read(store.vault(outcome)?).unwrap_or_default();
        (entry.result, entry.texts) = (after.result, after.texts);
    }
    Ok(entry)
}

/// Puts arguments together. `None` where a result is erased, or is not what was referred to, or
/// they would be longer than arguments are: whoever wants them holds them against a commitment
/// besides.
pub(crate) fn join(
    store: &mut dyn Store,
    pieces: &[ArgsPiece],
) -> Result<Option<Vec<u8>>, StoreError> {
    let mut args = Vec::new();
    // Parts of one result mostly follow one another.
    let mut last: Option<(Seq, Canonical)> = None;
    for piece in pieces {
        let part;
        let bytes = match piece {
            ArgsPiece::Bytes(bytes) => bytes.as_slice(),
            ArgsPiece::Part(outcome, path) => {
                if last.as_ref().is_none_or(|(of, _)| of != outcome) {
                    let row = store.vault(*outcome)?;
                    let result = row.and_then(|row| VaultEntry::from_row(&row)?.result);
                    let result = result.and_then(|it| Canonical::check(it, Profile::DATA).ok());
                    last = result.map(|result| (*outcome, result));
                }
                let Some((_, result)) = &last else { return Ok(None) };
                let reference = Reference { record: *outcome, path: path.item() };
                let Ok(picked) = reference.pick(result.item()) else { return Ok(None) };
                part = picked;
                part.as_bytes()
            }
        };
        if args.len().saturating_add(bytes.len()) > ENVELOPE_BYTES_MAX {
            return Ok(None);
        }
        args.extend_from_slice(bytes);
    }
    Ok(Some(args))
}
