//! The encoder: shortest heads, and maps whose keys it sorts.

use alloc::vec::Vec;

use super::{Canonical, Item};

/// Writes canonical CBOR.
///
/// Heads are always in their shortest form. Keys of a map written by [`Encoder::map`] must be
/// given in ascending order; [`MapBuilder`] sorts text keys for the caller.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    out: Vec<u8>,
}

impl Encoder {
    /// An empty encoder.
    pub const fn new() -> Self {
        Self { out: Vec::new() }
    }

    /// An empty encoder with room for `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { out: Vec::with_capacity(capacity) }
    }

    /// The bytes written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// How many bytes were written.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// True if nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// An unsigned integer.
    pub fn uint(&mut self, value: u64) {
        self.head(0, value);
    }

    /// A signed integer.
    pub fn int(&mut self, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.head(0, value),
            Err(_) => self.head(1, value.unsigned_abs().saturating_sub(1)),
        }
    }

    /// A byte string.
    pub fn bytes(&mut self, value: &[u8]) {
        self.head(2, length(value.len()));
        self.out.extend_from_slice(value);
    }

    /// A text string.
    pub fn text(&mut self, value: &str) {
        self.head(3, length(value.len()));
        self.out.extend_from_slice(value.as_bytes());
    }

    /// `false` or `true`.
    pub fn boolean(&mut self, value: bool) {
        self.out.push(if value { 0xf5 } else { 0xf4 });
    }

    /// `null`.
    pub fn null(&mut self) {
        self.out.push(0xf6);
    }

    /// A finite float in its shortest form; NaN and infinities, which the profile lacks, become
    /// `null`.
    pub fn float(&mut self, value: f64) {
        if !value.is_finite() {
            return self.null();
        }
        let (info, bits) = shortest_float(value);
        self.out.push(0xe0 | info);
        let bytes = bits.to_be_bytes();
        let width = 1_usize << u32::from(info.saturating_sub(24));
        let from = bytes.len().saturating_sub(width);
        self.out.extend_from_slice(bytes.get(from..).unwrap_or_default());
    }

    /// The head of an array of `count` items.
    pub fn array(&mut self, count: usize) {
        self.head(4, length(count));
    }

    /// The head of a map of `count` entries, whose keys the caller gives in ascending order.
    pub fn map(&mut self, count: usize) {
        self.head(5, length(count));
    }

    /// A whole item that is canonical already.
    pub fn item(&mut self, item: Item<'_>) {
        self.out.extend_from_slice(item.as_bytes());
    }

    /// The head of a byte string whose bytes are hashed or written apart.
    pub(crate) fn byte_head(&mut self, len: usize) {
        self.head(2, length(len));
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    #[inline]
    fn head(&mut self, major: u8, value: u64) {
        match u8::try_from(value) {
            // Most are.
            Ok(value @ 0..=23) => self.out.push((major << 5) | value),
            Ok(value) => self.out.extend_from_slice(&[(major << 5) | 24, value]),
            Err(_) => head(major, value, |bytes| self.out.extend_from_slice(bytes)),
        }
    }
}

/// The shortest head of a major type with its argument.
pub(crate) fn head(major: u8, value: u64, mut put: impl FnMut(&[u8])) {
    let major = major << 5;
    let [a, b, c, d, e, f, g, h] = value.to_be_bytes();
    match value {
        0..=23 => put(&[major | h]),
        24..=0xff => put(&[major | 24, h]),
        0x100..=0xffff => put(&[major | 25, g, h]),
        0x1_0000..=0xffff_ffff => put(&[major | 26, e, f, g, h]),
        _ => put(&[major | 27, a, b, c, d, e, f, g, h]),
    }
}

/// A map with text keys in the making. The keys may come in any order; of a key that is set
/// twice the last value stands.
///
/// The entries lie side by side behind room for the map's head. If the keys came in canonical
/// order, as most do, that is the map already, and nothing is copied.
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct MapBuilder {
    written: Encoder,
    entries: Vec<Entry>,
}

/// The position of an entry: its key with the key's head, and then its value.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    value: usize,
    end: usize,
}

impl MapBuilder {
    /// An empty map.
    pub const fn new() -> Self {
        Self { written: Encoder::new(), entries: Vec::new() }
    }

    /// Sets `key` to text.
    pub fn text(self, key: &str, value: &str) -> Self {
        self.room(value.len()).with(key, |encoder| encoder.text(value))
    }

    /// Sets `key` to a byte string.
    pub fn bytes(self, key: &str, value: &[u8]) -> Self {
        self.room(value.len()).with(key, |encoder| encoder.bytes(value))
    }

    /// Sets `key` to an unsigned integer.
    pub fn uint(self, key: &str, value: u64) -> Self {
        self.with(key, |encoder| encoder.uint(value))
    }

    /// Sets `key` to a signed integer.
    pub fn int(self, key: &str, value: i64) -> Self {
        self.with(key, |encoder| encoder.int(value))
    }

    /// Sets `key` to `false` or `true`.
    pub fn boolean(self, key: &str, value: bool) -> Self {
        self.with(key, |encoder| encoder.boolean(value))
    }

    /// Sets `key` to an item.
    pub fn item(self, key: &str, value: Item<'_>) -> Self {
        let len = value.as_bytes().len();
        self.room(len).with(key, |encoder| encoder.item(value))
    }

    /// Sets `key` to what `write` writes, which must be exactly one canonical item.
    pub(crate) fn with(mut self, key: &str, write: impl FnOnce(&mut Encoder)) -> Self {
        if self.written.is_empty() {
            self.written.out.push(0);
        }
        let start = self.written.len();
        self.written.text(key);
        let value = self.written.len();
        write(&mut self.written);
        self.entries.push(Entry { start, value, end: self.written.len() });
        self
    }

    /// The map, its keys sorted.
    pub fn finish(mut self) -> Canonical {
        // Encoded keys compare by length, which the head carries, then by bytes: the map's order.
        let ascend = |one: &Entry, next: &Entry| self.key(one) < self.key(next);
        let is_map = self.entries.is_sorted_by(ascend);
        match (u8::try_from(self.entries.len()), self.written.out.first_mut()) {
            (Ok(count @ 1..=23), Some(head)) if is_map => {
                *head = (5 << 5) | count;
                Canonical::from_encoder(self.written)
            }
            _ => self.sorted(),
        }
    }

    fn sorted(&self) -> Canonical {
        let mut sorted = self.entries.clone();
        // The sort keeps the order of equal keys: the last was set last.
        sorted.sort_by(|one, other| self.key(one).cmp(self.key(other)));
        let mut encoder = Encoder::with_capacity(self.written.len().saturating_add(HEAD_BYTES_MAX));
        let same = |one: &Entry, next: &Entry| self.key(one) == self.key(next);
        encoder.map(sorted.chunk_by(same).count());
        for entry in sorted.chunk_by(same).filter_map(<[Entry]>::last) {
            encoder.raw(self.written.out.get(entry.start..entry.end).unwrap_or_default());
        }
        Canonical::from_encoder(encoder)
    }

    /// A key with its head.
    fn key(&self, entry: &Entry) -> &[u8] {
        self.written.out.get(entry.start..entry.value).unwrap_or_default()
    }

    /// Makes room for a value of that length and what may follow it, which must not move it.
    fn room(mut self, len: usize) -> Self {
        self.written.out.reserve(len.saturating_add(BEHIND_BYTES));
        self
    }
}

/// The room behind a value, in a map under construction.
const BEHIND_BYTES: usize = 64;
/// The longest head.
const HEAD_BYTES_MAX: usize = 9;

/// Widens half precision, exactly.
pub(super) fn half_to_f64(half: u16) -> f64 {
    let sign = u64::from(half >> 15) << 63;
    let exponent = u64::from((half >> 10) & 0x1f);
    let fraction = u64::from(half & 0x3ff);
    match exponent {
        // Subnormal: fraction * 2^-24.
        0 => {
            let magnitude = f64::from(half & 0x3ff) * f64::from_bits(0x3e70_0000_0000_0000);
            f64::from_bits(magnitude.to_bits() | sign)
        }
        0x1f => f64::from_bits(sign | (0x7ff << 52) | (fraction << 42)),
        // Re-bias from 15 to 1023.
        _ => f64::from_bits(sign | (exponent.saturating_add(1008) << 52) | (fraction << 42)),
    }
}

/// The additional information (25, 26, 27) and the bits of the shortest exact form.
pub(super) fn shortest_float(value: f64) -> (u8, u64) {
    if let Some(half) = exact_half(value) {
        return (25, u64::from(half));
    }
    #[expect(clippy::as_conversions, reason = "narrowing floats has no other operator")]
    let single = value as f32;
    if f64::from(single).to_bits() == value.to_bits() {
        return (26, u64::from(single.to_bits()));
    }
    (27, value.to_bits())
}

/// The half-precision bits that widen to exactly `value`, if there are any.
fn exact_half(value: f64) -> Option<u16> {
    let bits = value.to_bits();
    let sign = u16::try_from(bits >> 63).ok()? << 15;
    let exponent = i64::try_from((bits >> 52) & 0x7ff).ok()?.checked_sub(1023)?;
    let fraction = bits & 0x000f_ffff_ffff_ffff;
    let candidate = if bits << 1 == 0 {
        sign
    } else if (-14..=15).contains(&exponent) {
        let biased = u16::try_from(exponent.checked_add(15)?).ok()?;
        sign | (biased << 10) | u16::try_from(fraction >> 42).ok()?
    } else if (-24..=-15).contains(&exponent) {
        let shift = u32::try_from(28_i64.checked_sub(exponent)?).ok()?;
        sign | u16::try_from((fraction | (1 << 52)) >> shift).ok()?
    } else {
        return None;
    };
    (half_to_f64(candidate).to_bits() == bits).then_some(candidate)
}

/// A length as the codec has it.
pub(crate) fn length(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cbor::Profile;
    use alloc::{format, string::String};

    /// In any order of keys, with any repetition, the map has the last values.
    #[test]
    fn a_map_is_the_same_in_any_order() {
        for count in [0_u64, 1, 2, 5, 23, 24, 25, 300] {
            let keys: Vec<String> = (0..count).map(|n| format!("k{n}")).collect();
            let entry = |map: MapBuilder, (key, n): (&String, u64)| map.uint(key, n);
            let all: Vec<(&String, u64)> = keys.iter().zip(0..).collect();
            let rising = all.iter().copied().fold(MapBuilder::new(), entry).finish();
            let falling = all.iter().rev().copied().fold(MapBuilder::new(), entry).finish();
            let again = all.iter().copied().fold(MapBuilder::new(), |map, (key, n)| {
                entry(map.text(key, "of which nothing stays"), (key, n))
            });
            let values: Vec<Canonical> = (0..count)
                .map(|n| {
                    let mut encoder = Encoder::new();
                    encoder.uint(n);
                    Canonical::from_encoder(encoder)
                })
                .collect();
            let all = keys.iter().zip(&values).map(|(key, value)| (key.as_str(), value.item()));
            let map = Canonical::map(all.collect());
            assert!(Item::check(map.as_bytes(), Profile::DATA).is_ok(), "{count}");
            assert_eq!([&rising, &falling, &again.finish()], [&map; 3], "{count}");
        }
    }
}
