//! Checks that a store has exactly the committed data, byte for byte.

use std::collections::BTreeSet;

use syscap_format::{ObjectId, Seq, VaultWrite};
use syscap_kernel::{Batch, Next, Store, StoreError};

use super::{found::Found, script::Kept};

/// Everything of these batches, and no record more.
pub(super) fn holds(store: &mut dyn Store, kept: &[Kept]) -> Result<(), Found> {
    holds_records(store, kept, 0)?;
    holds_objects(store, kept)?;
    holds_vault(store, kept)
}

/// The records from a position on.
pub(super) fn holds_records(
    store: &mut dyn Store,
    kept: &[Kept],
    from: usize,
) -> Result<(), Found> {
    let mut wanted = kept.iter().flat_map(|kept| &kept.links).skip(from);
    let start = Seq::new(u64::try_from(from).unwrap_or(u64::MAX));
    let (mut next, mut wrong) = (start, None);
    store.records(start, &mut |seq, bytes| match wanted.next() {
        Some(link) if link.seq == seq && link.bytes == bytes => {
            next = seq.next();
            Next::More
        }
        _ => {
            wrong = Some(next);
            Next::Enough
        }
    })?;
    match wrong.or_else(|| wanted.next().map(|link| link.seq)) {
        Some(seq) => Err(Found::Record(seq)),
        None => Ok(()),
    }
}

/// The control documents, and none of a name that nothing has.
pub(super) fn holds_objects(store: &mut dyn Store, kept: &[Kept]) -> Result<(), Found> {
    for object in kept.iter().flat_map(|kept| &kept.objects) {
        if store.object(&object.id)?.as_ref() != Some(object) {
            return Err(Found::Object(object.id));
        }
    }
    lacks_object(store, ObjectId::from_bytes([0x5a; 32]))
}

/// The vault's rows, and none of a record that has none.
pub(super) fn holds_vault(store: &mut dyn Store, kept: &[Kept]) -> Result<(), Found> {
    let mut has_one = BTreeSet::new();
    for write in kept.iter().flat_map(|kept| &kept.vault) {
        has_one.insert(write.seq);
        if !row(store, Row::Of(write))? {
            return Err(Found::Vault(write.seq));
        }
    }
    let records = kept.iter().flat_map(|kept| &kept.links).map(|link| link.seq);
    let beyond = records.clone().next_back().map_or(Seq::GENESIS, Seq::next);
    let mut others = records.chain([beyond]).filter(|seq| !has_one.contains(seq));
    others.try_for_each(|seq| lacks_row(store, seq))?;
    match store.reader()? {
        Some(mut reader) => read_alike(&mut *reader, kept),
        None => Ok(()),
    }
}

/// The handle for readers has the same rows.
fn read_alike(reader: &mut dyn Store, kept: &[Kept]) -> Result<(), Found> {
    for write in kept.iter().flat_map(|kept| &kept.vault) {
        if !row(reader, Row::Of(write))? {
            return Err(Found::Vault(write.seq));
        }
    }
    Ok(())
}

/// Checks that a refused batch left nothing, where the log holds these batches.
pub(super) fn lacks(store: &mut dyn Store, batch: &Batch, kept: &[Kept]) -> Result<(), Found> {
    holds(store, kept)?;
    let known = |id| kept.iter().flat_map(|kept| &kept.objects).any(|object| object.id == id);
    let ids = batch.objects().iter().map(|object| object.id);
    ids.filter(|id| !known(*id)).try_for_each(|id| lacks_object(store, id))?;
    batch.vault().iter().try_for_each(|write| lacks_row(store, write.seq))
}

fn lacks_object(store: &mut dyn Store, id: ObjectId) -> Result<(), Found> {
    if store.object(&id)?.is_some() { Err(Found::Object(id)) } else { Ok(()) }
}

pub(super) fn lacks_row(store: &mut dyn Store, seq: Seq) -> Result<(), Found> {
    if row(store, Row::None(seq))? { Ok(()) } else { Err(Found::Vault(seq)) }
}

/// A row that the vault is to have.
enum Row<'a> {
    /// The row that was written.
    Of(&'a VaultWrite),
    /// No row under this record.
    None(Seq),
}

/// Checks that the vault has it. Here alone the kit asks for a row.
fn row(store: &mut dyn Store, wanted: Row<'_>) -> Result<bool, StoreError> {
    Ok(match wanted {
        Row::Of(write) => {
            let len = store.vault_len(write.seq)?;
            store.vault(write.seq)?.as_ref() == Some(&write.row) && len == Some(write.row.len())
        }
        Row::None(seq) => store.vault(seq)?.is_none(),
    })
}
