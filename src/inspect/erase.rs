//! What else in the vault holds the texts of rows that are to be erased.

use std::collections::{BTreeMap, BTreeSet};

use syscap_format::{Canonical, Item, ItemKind, Profile, Record, RecordKind, Seq, VaultEntry};
use syscap_kernel::{Next, Store, StoreError, record_at, vault_entry};

use crate::{Error, Inspection};

/// Shortest text that is looked for, in bytes: a shorter one stands in many rows by chance.
pub const COPY_BYTES_MIN: usize = 8;

/// The rows that are meant, and those that hold their texts too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erasure {
    /// The records that were named and have a row, ascending.
    pub rows: Vec<(Seq, RecordKind)>,
    /// Other records whose rows hold a text of those, as it stands or within a longer one.
    pub copies: Vec<(Seq, RecordKind)>,
}

impl Erasure {
    /// The records, with the copies or without.
    pub fn records(&self, copies: bool) -> Vec<Seq> {
        let copies = self.copies.iter().filter(|_| copies);
        let all: BTreeSet<Seq> = self.rows.iter().chain(copies).map(|(seq, _)| *seq).collect();
        all.into_iter().collect()
    }
}

/// Texts, by their first bytes.
#[derive(Default)]
struct Texts {
    by_begin: BTreeMap<[u8; COPY_BYTES_MIN], BTreeSet<Box<[u8]>>>,
}

impl Texts {
    fn add(&mut self, text: &[u8]) {
        if let Some(begin) = text.first_chunk() {
            self.by_begin.entry(*begin).or_default().insert(text.into());
        }
    }

    /// Adds each text and byte string of an item.
    fn add_item(&mut self, item: Item<'_>) {
        match item.kind() {
            ItemKind::Text => self.add(item.as_text().unwrap_or_default().as_bytes()),
            ItemKind::Bytes => self.add(item.as_byte_string().unwrap_or_default()),
            ItemKind::Array => item.elements().for_each(|element| self.add_item(element)),
            ItemKind::Map => item.entries().for_each(|(_, value)| self.add_item(value)),
            _ => {}
        }
    }

    fn add_bytes(&mut self, canonical: Option<Vec<u8>>) {
        let checked = canonical.and_then(|bytes| Canonical::check(bytes, Profile::DATA).ok());
        checked.iter().for_each(|canonical| self.add_item(canonical.item()));
    }

    fn add_row(&mut self, entry: VaultEntry) {
        entry.texts.iter().for_each(|text| self.add(text.text.as_bytes()));
        self.add_bytes(entry.args);
        self.add_bytes(entry.result);
    }

    /// True if one of them stands in a row. A row holds its strings as they are.
    fn are_in(&self, row: &[u8]) -> bool {
        row.windows(COPY_BYTES_MIN).enumerate().any(|(at, begin)| {
            let found = begin.first_chunk().and_then(|begin| self.by_begin.get(begin));
            let rest = row.get(at..).unwrap_or_default();
            found.is_some_and(|texts| texts.iter().any(|text| rest.starts_with(text)))
        })
    }
}

impl Inspection {
    /// The rows of these records, and what else in the vault holds a text of theirs of at least
    /// [`COPY_BYTES_MIN`] bytes. It reads every row.
    ///
    /// # Errors
    /// [`Error::NoSuch`] for a record that is not there, is of a kind without rows, or whose row is
    /// gone; else as [`Options::open`](crate::Options::open).
    pub fn erasure(&self, records: &[Seq]) -> Result<Erasure, Error> {
        let mut store = self.store();
        let store = &mut **store;
        let (mut erasure, mut texts) = (Erasure::default(), Texts::default());
        let named: BTreeSet<Seq> = records.iter().copied().collect();
        for seq in &named {
            let none = || Error::NoSuch { what: "a record with a row", got: seq.to_string() };
            let bytes = record_at(store, *seq)?.ok_or_else(none)?;
            let body = Record::decode(&bytes).map_err(|_| StoreError::Damaged)?.body;
            let kind = body.kind();
            if !body.may_have_row() || store.vault_len(*seq)?.is_none() {
                return Err(none());
            }
            texts.add_row(vault_entry(store, *seq, *seq)?);
            erasure.rows.push((*seq, kind));
        }
        for (seq, kind) in with_rows(store)? {
            if named.contains(&seq) {
                continue;
            }
            if store.vault(seq)?.is_some_and(|row| texts.are_in(&row)) {
                erasure.copies.push((seq, kind));
            }
        }
        Ok(erasure)
    }
}

/// The records that may have rows.
fn with_rows(store: &mut dyn Store) -> Result<Vec<(Seq, RecordKind)>, StoreError> {
    let (mut found, mut damaged) = (Vec::new(), false);
    store.records(Seq::GENESIS, &mut |seq, bytes| match Record::decode(bytes) {
        Ok(record) => {
            let kind = record.body.kind();
            found.extend(record.body.may_have_row().then_some((seq, kind)));
            Next::More
        }
        Err(_) => {
            damaged = true;
            Next::Enough
        }
    })?;
    if damaged { Err(StoreError::Damaged) } else { Ok(found) }
}
