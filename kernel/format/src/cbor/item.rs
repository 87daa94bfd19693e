//! Checked items: a view that reads without copying, and its owned twin.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::{DecodeError, Decoder, Encoder, Profile};

/// The type of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// An unsigned integer.
    Uint,
    /// A negative integer.
    Negative,
    /// A byte string.
    Bytes,
    /// A text string.
    Text,
    /// An array.
    Array,
    /// A map.
    Map,
    /// `false` or `true`.
    Bool,
    /// `null`.
    Null,
    /// A float.
    Float,
}

/// One canonical item, checked when it was made; it reads its bytes without copying them.
///
/// Equality is equality of bytes, which for canonical items is equality of meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a>(&'a [u8]);

impl<'a> Item<'a> {
    /// `null`.
    pub const NULL: Item<'static> = Item(&[0xf6]);

    /// Checks that `bytes` are exactly one canonical item of the profile.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub fn check(bytes: &'a [u8], profile: Profile) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes, profile);
        let item = decoder.item()?;
        decoder.finish()?;
        Ok(item)
    }

    /// For bytes that the decoder has just checked.
    pub(super) const fn checked(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// For bytes that this crate has checked, or written, before.
    pub(crate) const fn trusted(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The encoded item.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The type.
    pub fn kind(self) -> ItemKind {
        self.decoder().peek().unwrap_or(ItemKind::Null)
    }

    /// The text, if it is text.
    pub fn as_text(self) -> Option<&'a str> {
        self.decoder().text().ok()
    }

    /// The bytes, if it is a byte string.
    pub fn as_byte_string(self) -> Option<&'a [u8]> {
        self.decoder().bytes().ok()
    }

    /// The number, if it is an unsigned integer.
    pub fn as_uint(self) -> Option<u64> {
        self.decoder().uint().ok()
    }

    /// The number, if it is an integer.
    pub fn as_int(self) -> Option<i128> {
        self.decoder().int().ok()
    }

    /// The number, if it is a float.
    pub fn as_float(self) -> Option<f64> {
        self.decoder().float().ok()
    }

    /// The value, if it is `false` or `true`.
    pub fn as_bool(self) -> Option<bool> {
        self.decoder().boolean().ok()
    }

    /// True if it is `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0 == Self::NULL.0
    }

    /// The value of a text key, if it is a map that has it.
    pub fn get(self, key: &str) -> Option<Item<'a>> {
        let (mut decoder, count) =
            if self.kind() == ItemKind::Map { self.children() } else { return None };
        for _ in 0..count {
            let name = decoder.text_bytes().ok()?;
            // Shorter keys come first.
            match name.len().cmp(&key.len()).then_with(|| name.cmp(key.as_bytes())) {
                Ordering::Less => drop(decoder.jump().ok()?),
                Ordering::Equal => return decoder.jump().ok(),
                Ordering::Greater => return None,
            }
        }
        None
    }

    /// How many items an array, or entries a map has; 0 for anything else.
    pub fn count(self) -> usize {
        self.children().1
    }

    /// The items of an array; nothing for anything else.
    pub fn elements(self) -> impl Iterator<Item = Item<'a>> {
        let (mut decoder, count) =
            if self.kind() == ItemKind::Array { self.children() } else { (self.decoder(), 0) };
        (0..count).map_while(move |_| decoder.jump().ok())
    }

    /// The entries of a map with text keys, in canonical order; nothing for anything else.
    pub fn entries(self) -> impl Iterator<Item = (&'a str, Item<'a>)> {
        let (mut decoder, count) =
            if self.kind() == ItemKind::Map { self.children() } else { (self.decoder(), 0) };
        (0..count).map_while(move |_| Some((decoder.text().ok()?, decoder.jump().ok()?)))
    }

    fn children(self) -> (Decoder<'a>, usize) {
        let mut decoder = self.decoder();
        let count = match self.kind() {
            ItemKind::Array => decoder.array(),
            ItemKind::Map => decoder.map_head(),
            _ => Ok(0),
        };
        let count = count.ok().and_then(|count| usize::try_from(count).ok());
        (decoder, count.unwrap_or(0))
    }

    const fn decoder(self) -> Decoder<'a> {
        Decoder::new(self.0, Profile::DATA)
    }
}

/// One canonical item that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canonical(Vec<u8>);

impl Canonical {
    /// Checks that `bytes` are exactly one canonical item of the profile, and keeps them.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub fn check(bytes: Vec<u8>, profile: Profile) -> Result<Self, DecodeError> {
        Item::check(&bytes, profile)?;
        Ok(Self(bytes))
    }

    /// A text item.
    pub fn text(value: &str) -> Self {
        let mut encoder = Encoder::new();
        encoder.text(value);
        Self(encoder.into_bytes())
    }

    /// A list of items.
    pub fn list(items: impl ExactSizeIterator<Item = Self>) -> Self {
        let mut encoder = Encoder::new();
        encoder.array(items.len());
        items.for_each(|item| encoder.item(item.item()));
        Self(encoder.into_bytes())
    }

    /// A map with text keys, each once: they may come in any order.
    pub fn map(mut entries: Vec<(&str, Item<'_>)>) -> Self {
        // Encoded keys compare by length, then by bytes: the head carries the length.
        entries.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        entries.dedup_by(|(a, _), (b, _)| a == b);
        let mut encoder = Encoder::new();
        encoder.map(entries.len());
        for (key, value) in entries {
            encoder.text(key);
            encoder.item(value);
        }
        Self(encoder.into_bytes())
    }

    /// `null`.
    pub fn null() -> Self {
        Self(Item::NULL.as_bytes().to_vec())
    }

    /// For what an encoder of this crate wrote as one item.
    pub(crate) fn from_encoder(encoder: Encoder) -> Self {
        Self(encoder.into_bytes())
    }

    /// A view of the item.
    pub fn item(&self) -> Item<'_> {
        Item::checked(&self.0)
    }

    /// The encoded item.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The encoded item, given up.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl From<Item<'_>> for Canonical {
    fn from(item: Item<'_>) -> Self {
        Self(item.as_bytes().to_vec())
    }
}
