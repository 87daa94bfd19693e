//! Shapes: how typed values stand in canonical CBOR.
//!
//! Every control document is a map of fixed shape: all its integer keys are present, in
//! ascending order, `null` where there is no value. So one meaning has one encoding, decoding
//! is a straight walk, and the tables in `docs/spec` are checked against [`FieldSpec`]s.

use alloc::{boxed::Box, collections::BTreeMap, string::String, vec::Vec};

use crate::cbor::{Canonical, DecodeError, DecodeFault, Decoder, Encoder, Item, ItemKind};
use crate::id::{self, AgentId, ConstraintId, IdempotencyKey, Seq, ToolId};
use crate::record::head::Head;
use crate::sign::{PublicKey, Signature};
use crate::time::UnixMillis;

pub use crate::{choice, code, flags, shape};

/// A value that stands as one canonical item.
pub trait Field: Sized {
    /// The item's type, in the words of `docs/spec`.
    const SHAPE: &'static str;

    /// Writes the item.
    fn put(&self, encoder: &mut Encoder);

    /// Reads the item.
    ///
    /// # Errors
    /// Faults of the decoder; [`DecodeFault::Value`] for an item that is no such value.
    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError>;

    /// Reads an array of at most so many of them.
    ///
    /// # Errors
    /// As [`Field::take`]; [`DecodeFault::Value`] for a longer one.
    fn take_list(decoder: &mut Decoder<'_>, most: usize) -> Result<Vec<Self>, DecodeError> {
        let fault = decoder.fault(DecodeFault::Value);
        let mut values = Vec::new();
        decoder.each(|decoder| {
            if values.len() >= most {
                return Err(fault);
            }
            values.push(Self::take(decoder)?);
            Ok(())
        })?;
        Ok(values)
    }
}

/// A type that [`shape!`](crate::shape) declares.
pub trait Shape: Field {
    /// How many keys it has, without one that may be absent.
    const COUNT: usize;
    /// True if it has no field that may be absent. Only such a shape can be a group of another's,
    /// or a record's body: whoever writes the head of its map must know how many keys there are.
    const WHOLE: bool;

    /// The keys, in their order.
    #[must_use]
    fn fields() -> Specs;

    /// Writes the keys that are always there and their values, without the head of the map.
    fn put_fields(&self, encoder: &mut Encoder);

    /// Reads the keys that are always there and their values, after the head of the map.
    ///
    /// # Errors
    /// As [`Field::take`]; [`DecodeFault::Key`] for another key.
    fn take_fields(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError>;
}

/// One key of a shape, for documents and their test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldSpec {
    /// The integer key.
    pub key: u64,
    /// The name.
    pub name: &'static str,
    /// The item's type.
    pub shape: &'static str,
    /// True if the key may be absent.
    pub maybe: bool,
}

/// The keys of a shape.
pub type Specs = Vec<FieldSpec>;

/// The bytes of a value.
pub(crate) fn encode<T: Field>(value: &T) -> Vec<u8> {
    let mut encoder = Encoder::with_capacity(512);
    value.put(&mut encoder);
    encoder.into_bytes()
}

/// Decodes a value whole, with nothing after it.
///
/// # Errors
/// As [`Field::take`]; [`DecodeFault::Trailing`] for bytes after it.
pub(crate) fn decode<T: Field>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut decoder = Decoder::new(bytes, crate::cbor::Profile::CONTROL);
    let value = T::take(&mut decoder)?;
    decoder.finish()?;
    Ok(value)
}

/// A count of keys as the codec has it.
pub fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl Field for u64 {
    const SHAPE: &'static str = "uint";

    fn put(&self, encoder: &mut Encoder) {
        encoder.uint(*self);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.uint()
    }
}

impl Field for bool {
    const SHAPE: &'static str = "bool";

    fn put(&self, encoder: &mut Encoder) {
        encoder.boolean(*self);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.boolean()
    }
}

impl Field for Box<str> {
    const SHAPE: &'static str = "text";

    fn put(&self, encoder: &mut Encoder) {
        encoder.text(self);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.text().map(Box::from)
    }
}

impl Field for String {
    const SHAPE: &'static str = "text";

    fn put(&self, encoder: &mut Encoder) {
        encoder.text(self);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.text().map(String::from)
    }
}

impl<const N: usize> Field for [u8; N] {
    const SHAPE: &'static str = match N {
        16 => "bstr of 16",
        32 => "bstr of 32",
        _ => "bstr",
    };

    fn put(&self, encoder: &mut Encoder) {
        encoder.bytes(self);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.array_of()
    }
}

impl Field for Vec<u8> {
    const SHAPE: &'static str = "bstr";

    fn put(&self, encoder: &mut Encoder) {
        encoder.bytes(self);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.bytes().map(Vec::from)
    }
}

/// Anything canonical, kept as it is.
impl Field for Canonical {
    const SHAPE: &'static str = "any";

    fn put(&self, encoder: &mut Encoder) {
        encoder.item(self.item());
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.data().map(|item: Item<'_>| Self::from(item))
    }
}

impl<T: Field> Field for Option<T> {
    const SHAPE: &'static str = T::SHAPE;

    fn put(&self, encoder: &mut Encoder) {
        match self {
            Some(value) => value.put(encoder),
            None => encoder.null(),
        }
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        if decoder.peek()? == ItemKind::Null {
            decoder.null()?;
            return Ok(None);
        }
        T::take(decoder).map(Some)
    }
}

impl<T: Field> Field for Box<T> {
    const SHAPE: &'static str = T::SHAPE;

    fn put(&self, encoder: &mut Encoder) {
        (**self).put(encoder);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        T::take(decoder).map(Self::new)
    }
}

/// A completion without data.
impl Field for () {
    const SHAPE: &'static str = "null";

    fn put(&self, encoder: &mut Encoder) {
        encoder.null();
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.null()
    }
}

/// Two values, as an array.
impl<A: Field, B: Field> Field for (A, B) {
    const SHAPE: &'static str = "array [.., ..]";

    fn put(&self, encoder: &mut Encoder) {
        encoder.array(2);
        self.0.put(encoder);
        self.1.put(encoder);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        two(decoder, |decoder| Ok((A::take(decoder)?, B::take(decoder)?)))
    }
}

/// A map, as an array of pairs in the order of their keys.
impl<K: Field + Ord, V: Field> Field for BTreeMap<K, V> {
    const SHAPE: &'static str = "array of [.., ..]";

    fn put(&self, encoder: &mut Encoder) {
        encoder.array(self.len());
        for (key, value) in self {
            encoder.array(2);
            key.put(encoder);
            value.put(encoder);
        }
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let mut values = Self::new();
        decoder.each(|decoder| {
            let fault = decoder.fault(DecodeFault::Value);
            let (key, value) = Field::take(decoder)?;
            if values.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(fault);
            }
            values.insert(key, value);
            Ok(())
        })?;
        Ok(values)
    }
}

/// A list; its element type is its shape.
impl<T: Field> Field for Vec<T> {
    const SHAPE: &'static str = T::SHAPE;

    fn put(&self, encoder: &mut Encoder) {
        encoder.array(self.len());
        self.iter().for_each(|value| value.put(encoder));
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        T::take_list(decoder, usize::MAX)
    }
}

/// Reads an array of two.
fn two<T>(
    decoder: &mut Decoder<'_>,
    read: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let fault = decoder.fault(DecodeFault::Value);
    if decoder.array()? != 2 {
        return Err(fault);
    }
    decoder.nested(read)
}

/// Digests stand as byte strings of 32.
macro_rules! digest_field {
    ($($name:ident)*) => {$(
        impl Field for id::$name {
            const SHAPE: &'static str = "bstr of 32";

            fn put(&self, encoder: &mut Encoder) {
                encoder.bytes(self.as_bytes());
            }

            fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                decoder.array_of().map(Self::from_bytes)
            }
        }
    )*};
}
digest_field! {
    HomeId Leaf TokenId ObjectId PolicyHash ToolsHash SnapshotId ArgsHash CallHash ResultHash
    SentHash RefusalsDigest FactId DefinitionHash RecoveryHash TextHash StateHash
}

/// Names stand as text and are checked on the way in.
macro_rules! name_field {
    ($($name:ident)*) => {$(
        impl Field for $name {
            const SHAPE: &'static str = concat!("text ", stringify!($name));

            fn put(&self, encoder: &mut Encoder) {
                encoder.text(self.as_str());
            }

            fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                let fault = decoder.fault(DecodeFault::Value);
                Self::new(decoder.text()?).ok_or(fault)
            }
        }
    )*};
}
pub(crate) use name_field;
name_field! { AgentId ToolId IdempotencyKey ConstraintId }

/// Numbers stand as unsigned integers.
macro_rules! number_field {
    ($($name:ident $shape:literal)*) => {$(
        impl Field for $name {
            const SHAPE: &'static str = $shape;

            fn put(&self, encoder: &mut Encoder) {
                encoder.uint(self.get());
            }

            fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                decoder.uint().map(Self::new)
            }
        }
    )*};
}
number_field! { Seq "uint Seq" UnixMillis "uint ms since 1970" }

/// A position and the leaf there.
impl Field for Head {
    const SHAPE: &'static str = "array [uint Seq, bstr of 32]";

    fn put(&self, encoder: &mut Encoder) {
        encoder.array(2);
        self.seq.put(encoder);
        self.leaf.put(encoder);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(DecodeFault::Value);
        if decoder.array()? != 2 {
            return Err(fault);
        }
        Ok(Self { seq: Seq::take(decoder)?, leaf: id::Leaf::take(decoder)? })
    }
}

impl Field for PublicKey {
    const SHAPE: &'static str = "bstr of 32 key";

    fn put(&self, encoder: &mut Encoder) {
        encoder.bytes(self.as_bytes());
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(DecodeFault::Value);
        Self::new(decoder.array_of()?).map_err(|_| fault)
    }
}

impl Field for Signature {
    const SHAPE: &'static str = "bstr of 64";

    fn put(&self, encoder: &mut Encoder) {
        encoder.bytes(self.as_bytes());
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.array_of().map(Self::from_bytes)
    }
}
