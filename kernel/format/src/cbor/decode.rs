//! A strict pull decoder: every read checks what it reads.

use super::{DecodeError, DecodeFault, Floats, Item, ItemKind, Profile};

/// Reads canonical CBOR from a slice, front to back.
///
/// The caller names the type that it expects; anything else is [`DecodeFault::Type`]. Maps are read
/// either by a fixed shape ([`Decoder::shape`], then [`Decoder::key`] for each key) or by a
/// closure for each entry ([`Decoder::text_map`]); both refuse keys that repeat or are out of
/// order. [`Decoder::item`] checks a whole item of any type and returns it unread.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    depth_left: u8,
    floats: Floats,
}

/// A decoded head: major type, additional information and argument.
#[derive(Clone, Copy)]
struct Head {
    major: u8,
    info: u8,
    value: u64,
}

impl<'a> Decoder<'a> {
    /// Starts at the first byte of `bytes`.
    pub const fn new(bytes: &'a [u8], profile: Profile) -> Self {
        Self { bytes, at: 0, depth_left: profile.depth_max, floats: profile.floats }
    }

    /// The offset of the next byte.
    pub const fn position(&self) -> usize {
        self.at
    }

    /// A fault at the current position, for schema checks by callers.
    pub const fn fault(&self, fault: DecodeFault) -> DecodeError {
        DecodeError { fault, at: self.at }
    }

    /// Ends the input.
    ///
    /// # Errors
    /// [`DecodeFault::Trailing`] where bytes are left.
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.fault(DecodeFault::Trailing)) }
    }

    /// The type of the next item, without reading it.
    ///
    /// # Errors
    /// [`DecodeFault::End`] at the end of the input; the fault of a first byte that starts no item.
    pub fn peek(&self) -> Result<ItemKind, DecodeError> {
        let first = *self.bytes.get(self.at).ok_or(self.fault(DecodeFault::End))?;
        Ok(match (first >> 5, first & 31) {
            (0, _) => ItemKind::Uint,
            (1, _) => ItemKind::Negative,
            (2, _) => ItemKind::Bytes,
            (3, _) => ItemKind::Text,
            (4, _) => ItemKind::Array,
            (5, _) => ItemKind::Map,
            (6, _) => return Err(self.fault(DecodeFault::Tag)),
            (_, 20 | 21) => ItemKind::Bool,
            (_, 22) => ItemKind::Null,
            (_, 25..=27) => ItemKind::Float,
            _ => return Err(self.fault(DecodeFault::Simple)),
        })
    }

    /// An unsigned integer.
    ///
    /// # Errors
    /// [`DecodeFault::Type`] where another type stands.
    pub fn uint(&mut self) -> Result<u64, DecodeError> {
        let start = self.at;
        let head = self.head()?;
        if head.major == 0 { Ok(head.value) } else { Err(fault_at(DecodeFault::Type, start)) }
    }

    /// An integer, in [-2^63, 2^64-1].
    ///
    /// # Errors
    /// [`DecodeFault::Type`] or [`DecodeFault::IntRange`].
    pub fn int(&mut self) -> Result<i128, DecodeError> {
        let start = self.at;
        let head = self.head()?;
        match head.major {
            0 => Ok(i128::from(head.value)),
            1 if head.value > NEGATIVE_MAX => Err(fault_at(DecodeFault::IntRange, start)),
            // -1 - n, in two's complement.
            1 => Ok(!i128::from(head.value)),
            _ => Err(fault_at(DecodeFault::Type, start)),
        }
    }

    /// A byte string.
    ///
    /// # Errors
    /// [`DecodeFault::Type`] or [`DecodeFault::Length`].
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let start = self.at;
        let head = self.head()?;
        if head.major == 2 {
            self.take(head.value)
        } else {
            Err(fault_at(DecodeFault::Type, start))
        }
    }

    /// A byte string of exactly `N` bytes.
    ///
    /// # Errors
    /// [`DecodeFault::Type`], or [`DecodeFault::Value`] where the length is another.
    pub fn array_of<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let start = self.at;
        self.bytes()?.try_into().map_err(|_| fault_at(DecodeFault::Value, start))
    }

    /// A text string.
    ///
    /// # Errors
    /// [`DecodeFault::Type`], [`DecodeFault::Length`] or [`DecodeFault::Utf8`].
    pub fn text(&mut self) -> Result<&'a str, DecodeError> {
        let start = self.at;
        let head = self.head()?;
        if head.major != 3 {
            return Err(fault_at(DecodeFault::Type, start));
        }
        core::str::from_utf8(self.take(head.value)?).map_err(|_| fault_at(DecodeFault::Utf8, start))
    }

    /// `false` or `true`.
    ///
    /// # Errors
    /// [`DecodeFault::Type`] where another type stands.
    pub fn boolean(&mut self) -> Result<bool, DecodeError> {
        let start = self.at;
        match self.simple()? {
            20 => Ok(false),
            21 => Ok(true),
            _ => Err(fault_at(DecodeFault::Type, start)),
        }
    }

    /// `null`.
    ///
    /// # Errors
    /// [`DecodeFault::Type`] where another type stands.
    pub fn null(&mut self) -> Result<(), DecodeError> {
        let start = self.at;
        if self.simple()? == 22 { Ok(()) } else { Err(fault_at(DecodeFault::Type, start)) }
    }

    /// A float, where the profile takes them.
    ///
    /// # Errors
    /// [`DecodeFault::Float`], [`DecodeFault::NotFinite`] or [`DecodeFault::Type`].
    pub fn float(&mut self) -> Result<f64, DecodeError> {
        let start = self.at;
        let head = self.head()?;
        if head.major != 7 || head.info < 25 {
            return Err(fault_at(DecodeFault::Type, start));
        }
        self.finite(head, start)
    }

    /// The head of an array: how many items follow.
    ///
    /// # Errors
    /// [`DecodeFault::Type`], or [`DecodeFault::Length`] where the input can't hold that many items.
    pub fn array(&mut self) -> Result<u64, DecodeError> {
        let start = self.at;
        let head = self.head()?;
        if head.major != 4 {
            return Err(fault_at(DecodeFault::Type, start));
        }
        self.fits(head.value, start)
    }

    /// An array whose every item is read by `each`, which must read exactly one.
    ///
    /// # Errors
    /// Faults of the head, of the depth, and those that `each` returns.
    pub fn each<F>(&mut self, mut each: F) -> Result<(), DecodeError>
    where
        F: FnMut(&mut Self) -> Result<(), DecodeError>,
    {
        let count = self.array()?;
        self.nested(|this| (0..count).try_for_each(|_| each(this)))
    }

    /// The head of a map that has exactly `count` keys, read next by [`Decoder::key`].
    ///
    /// # Errors
    /// [`DecodeFault::Type`], or [`DecodeFault::Key`] where the count is another.
    pub fn shape(&mut self, count: u64) -> Result<(), DecodeError> {
        let start = self.at;
        let head = self.head()?;
        match head.major {
            5 if head.value == count => Ok(()),
            5 => Err(fault_at(DecodeFault::Key, start)),
            _ => Err(fault_at(DecodeFault::Type, start)),
        }
    }

    /// The same of a map that may have up to `most` keys more, and how many it has.
    ///
    /// # Errors
    /// As [`Decoder::shape`].
    pub fn shape_or_more(&mut self, count: u64, most: u64) -> Result<u64, DecodeError> {
        let start = self.at;
        let head = self.head()?;
        match (head.major, head.value.checked_sub(count)) {
            (5, Some(more)) if more <= most => Ok(more),
            (5, _) => Err(fault_at(DecodeFault::Key, start)),
            _ => Err(fault_at(DecodeFault::Type, start)),
        }
    }

    /// The next key of a fixed shape. The schema names keys in ascending order, each once, so
    /// a match is also the check of order and uniqueness.
    ///
    /// # Errors
    /// [`DecodeFault::Key`] where another key stands.
    pub fn key(&mut self, key: u64) -> Result<(), DecodeError> {
        let start = self.at;
        if self.uint()? == key { Ok(()) } else { Err(fault_at(DecodeFault::Key, start)) }
    }

    /// True if that key stands next; it is read only then.
    ///
    /// # Errors
    /// [`DecodeFault::Type`] where no unsigned integer stands there.
    pub fn key_if(&mut self, key: u64) -> Result<bool, DecodeError> {
        let start = self.at;
        let found = self.uint()? == key;
        if !found {
            self.at = start;
        }
        Ok(found)
    }

    /// A map with text keys: `each` gets every key and must read exactly its value.
    ///
    /// # Errors
    /// [`DecodeFault::KeyType`], [`DecodeFault::KeyOrder`], [`DecodeFault::DuplicateKey`], [`DecodeFault::Depth`] and
    /// those that `each` returns.
    pub fn text_map<F>(&mut self, mut each: F) -> Result<(), DecodeError>
    where
        F: FnMut(&'a str, &mut Self) -> Result<(), DecodeError>,
    {
        let count = self.map_head()?;
        self.nested(|this| {
            let mut last: Option<&'a [u8]> = None;
            (0..count).try_for_each(|_| {
                let start = this.at;
                if this.peek()? != ItemKind::Text {
                    return Err(fault_at(DecodeFault::KeyType, start));
                }
                let key = this.text()?;
                last = Some(this.ascending(last, start)?);
                each(key, this)
            })
        })
    }

    /// Checks one item of any type and returns it whole.
    ///
    /// # Errors
    /// The first fault of the item.
    pub fn item(&mut self) -> Result<Item<'a>, DecodeError> {
        let start = self.at;
        self.skip()?;
        Ok(Item::checked(self.since(start)))
    }

    /// The next item of bytes that were checked before: only where it ends is looked for.
    pub(super) fn jump(&mut self) -> Result<Item<'a>, DecodeError> {
        let start = self.at;
        let mut left = 1_u64;
        while left > 0 {
            let head = self.head()?;
            let inner = match head.major {
                2 | 3 => {
                    self.take(head.value)?;
                    0
                }
                4 => head.value,
                5 => head.value.saturating_mul(2),
                _ => 0,
            };
            left = left.saturating_sub(1).saturating_add(inner);
        }
        Ok(Item::checked(self.since(start)))
    }

    /// The bytes of a text that was checked before.
    pub(super) fn text_bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let start = self.at;
        let head = self.head()?;
        if head.major == 3 {
            self.take(head.value)
        } else {
            Err(fault_at(DecodeFault::Type, start))
        }
    }

    /// Checks one item, within [`Profile::DATA`] also where it stands in a message that may be
    /// deeper, and returns it whole.
    pub(crate) fn data(&mut self) -> Result<Item<'a>, DecodeError> {
        let outer = self.depth_left;
        self.depth_left = outer.min(Profile::DATA.depth_max);
        let item = self.item();
        self.depth_left = outer;
        item
    }

    fn skip(&mut self) -> Result<(), DecodeError> {
        let start = self.at;
        let head = self.head()?;
        match head.major {
            0 => Ok(()),
            1 if head.value > NEGATIVE_MAX => Err(fault_at(DecodeFault::IntRange, start)),
            1 => Ok(()),
            2 => self.take(head.value).map(|_| ()),
            3 => match core::str::from_utf8(self.take(head.value)?) {
                Ok(_) => Ok(()),
                Err(_) => Err(fault_at(DecodeFault::Utf8, start)),
            },
            4 => {
                let count = self.fits(head.value, start)?;
                self.nested(|this| (0..count).try_for_each(|_| this.skip()))
            }
            5 => {
                let count = self.fits(head.value, start)?;
                self.nested(|this| this.skip_entries(count))
            }
            6 => Err(fault_at(DecodeFault::Tag, start)),
            _ if head.info >= 25 => self.finite(head, start).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn skip_entries(&mut self, count: u64) -> Result<(), DecodeError> {
        let mut kind = None;
        let mut last = None;
        for _ in 0..count {
            let start = self.at;
            let found = self.peek()?;
            if !matches!(found, ItemKind::Uint | ItemKind::Text)
                || *kind.get_or_insert(found) != found
            {
                return Err(fault_at(DecodeFault::KeyType, start));
            }
            self.skip()?;
            last = Some(self.ascending(last, start)?);
            self.skip()?;
        }
        Ok(())
    }

    /// The encoded key that began at `start`, if it stands above `last`.
    fn ascending(&self, last: Option<&'a [u8]>, start: usize) -> Result<&'a [u8], DecodeError> {
        let key = self.since(start);
        match last.map(|last| last.cmp(key)) {
            None | Some(core::cmp::Ordering::Less) => Ok(key),
            Some(core::cmp::Ordering::Equal) => Err(fault_at(DecodeFault::DuplicateKey, start)),
            Some(core::cmp::Ordering::Greater) => Err(fault_at(DecodeFault::KeyOrder, start)),
        }
    }

    /// Reads the content of an array or map, a level deeper. A caller that reads the head itself
    /// counts the level here, so that its content is never nested deeper than the profile allows.
    ///
    /// # Errors
    /// [`DecodeFault::Depth`]; those that `read` returns.
    pub fn nested<T, F>(&mut self, read: F) -> Result<T, DecodeError>
    where
        F: FnOnce(&mut Self) -> Result<T, DecodeError>,
    {
        let outer = self.depth_left;
        self.depth_left = outer.checked_sub(1).ok_or(self.fault(DecodeFault::Depth))?;
        let value = read(self)?;
        self.depth_left = outer;
        Ok(value)
    }

    /// Begins a map with text keys, and says how many entries it has.
    pub fn map_head(&mut self) -> Result<u64, DecodeError> {
        let start = self.at;
        let head = self.head()?;
        if head.major != 5 {
            return Err(fault_at(DecodeFault::Type, start));
        }
        self.fits(head.value, start)
    }

    fn simple(&mut self) -> Result<u8, DecodeError> {
        let start = self.at;
        let head = self.head()?;
        if head.major == 7 { Ok(head.info) } else { Err(fault_at(DecodeFault::Type, start)) }
    }

    /// An item takes a byte at least, so a count beyond what is left can be refused before
    /// anything is reserved for it.
    fn fits(&self, count: u64, start: usize) -> Result<u64, DecodeError> {
        let left = self.bytes.len().saturating_sub(self.at);
        match usize::try_from(count) {
            Ok(wanted) if wanted <= left => Ok(count),
            _ => Err(fault_at(DecodeFault::Length, start)),
        }
    }

    fn finite(&self, head: Head, start: usize) -> Result<f64, DecodeError> {
        if self.floats == Floats::Refused {
            return Err(fault_at(DecodeFault::Float, start));
        }
        let value = match (head.info, u16::try_from(head.value), u32::try_from(head.value)) {
            (25, Ok(half), _) => super::encode::half_to_f64(half),
            (26, _, Ok(single)) => f64::from(f32::from_bits(single)),
            _ => f64::from_bits(head.value),
        };
        if !value.is_finite() {
            return Err(fault_at(DecodeFault::NotFinite, start));
        }
        let (shortest, _) = super::encode::shortest_float(value);
        if shortest == head.info { Ok(value) } else { Err(fault_at(DecodeFault::Float, start)) }
    }

    // Every read begins here: called out of line it is a quarter of a record's decoding.
    #[inline]
    fn head(&mut self) -> Result<Head, DecodeError> {
        let start = self.at;
        let first = *self.bytes.get(start).ok_or(self.fault(DecodeFault::End))?;
        self.at = start.saturating_add(1);
        let (major, info) = (first >> 5, first & 31);
        let (value, least) = match info {
            0..=23 => (u64::from(info), 0),
            24 => (self.argument::<1>()?, 24),
            25 => (self.argument::<2>()?, 0x100),
            26 => (self.argument::<4>()?, 0x1_0000),
            27 => (self.argument::<8>()?, 0x1_0000_0000),
            31 if matches!(major, 2..=5 | 7) => {
                return Err(fault_at(DecodeFault::Indefinite, start));
            }
            _ => return Err(fault_at(DecodeFault::Reserved, start)),
        };
        if major == 7 {
            return match info {
                20..=22 | 25..=27 => Ok(Head { major, info, value }),
                _ => Err(fault_at(DecodeFault::Simple, start)),
            };
        }
        if value < least {
            return Err(fault_at(DecodeFault::NonShortest, start));
        }
        Ok(Head { major, info, value })
    }

    fn argument<const N: usize>(&mut self) -> Result<u64, DecodeError> {
        let end = self.at.saturating_add(N);
        let bytes = self.bytes.get(self.at..end).ok_or(self.fault(DecodeFault::End))?;
        self.at = end;
        Ok(bytes.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], DecodeError> {
        let start = self.at;
        let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
        let taken = end.and_then(|end| self.bytes.get(start..end));
        let taken = taken.ok_or(fault_at(DecodeFault::Length, start))?;
        self.at = start.saturating_add(taken.len());
        Ok(taken)
    }

    fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }
}

/// -1 - 2^63 + 1: the largest argument of a negative integer within the profile.
const NEGATIVE_MAX: u64 = 0x7fff_ffff_ffff_ffff;

const fn fault_at(fault: DecodeFault, at: usize) -> DecodeError {
    DecodeError { fault, at }
}
