//! Reading the map of a key file: each entry is taken once, and none may be left over.

use syscap_format::{Item, ItemKind, Profile};

use crate::keys::kinds::KeyFileError;

/// The entries that were not taken yet.
pub(super) struct Fields<'a> {
    entries: Vec<(&'a str, Item<'a>)>,
}

impl<'a> Fields<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, KeyFileError> {
        Self::of(Item::check(bytes, Profile::DATA).map_err(|_| KeyFileError::Form)?)
    }

    pub(super) fn of(item: Item<'a>) -> Result<Self, KeyFileError> {
        let entries: Vec<_> = item.entries().collect();
        if item.kind() == ItemKind::Map && entries.len() == item.count() {
            Ok(Self { entries })
        } else {
            Err(KeyFileError::Form)
        }
    }

    /// An optional field.
    pub(super) fn maybe(&mut self, key: &str) -> Option<Item<'a>> {
        let place = self.entries.iter().position(|(name, _)| *name == key)?;
        Some(self.entries.swap_remove(place).1)
    }

    pub(super) fn uint(&mut self, key: &str) -> Result<u64, KeyFileError> {
        self.take(key, Item::as_uint)
    }

    pub(super) fn text(&mut self, key: &str) -> Result<&'a str, KeyFileError> {
        self.take(key, Item::as_text)
    }

    pub(super) fn bytes(&mut self, key: &str) -> Result<&'a [u8], KeyFileError> {
        self.take(key, Item::as_byte_string)
    }

    /// Bytes of this length.
    pub(super) fn array<const N: usize>(&mut self, key: &str) -> Result<[u8; N], KeyFileError> {
        self.bytes(key)?.try_into().map_err(|_| KeyFileError::Form)
    }

    /// Refuses remaining fields.
    pub(super) fn end(self) -> Result<(), KeyFileError> {
        if self.entries.is_empty() { Ok(()) } else { Err(KeyFileError::Form) }
    }

    fn take<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(Item<'a>) -> Option<T>,
    ) -> Result<T, KeyFileError> {
        self.maybe(key).and_then(read).ok_or(KeyFileError::Form)
    }
}
