//! Shapes: how typed values stand in canonical CBOR.
//!
//! Every control document is a map of fixed shape: all its integer keys are present, in
//! ascending order, `null` where there is no value. So one meaning has one encoding, decoding
//! is a straight walk, and the tables in `docs/spec.md` are checked against [`FieldSpec`]s.

use alloc::{boxed::Box, string::String, vec::Vec};

use crate::{
    cbor::{Canonical, DecodeError, Decoder, Encoder, Fault, Item, Kind},
    id::{self, AgentId, ConstraintId, IdempotencyKey, Seq, ToolId},
    record::head::Head,
    sign::{PublicKey, Signature},
    time::UnixMillis,
};

/// A value that stands as one canonical item.
pub(crate) trait Field: Sized {
    /// The item's type, in the words of `docs/spec.md`.
    const SHAPE: &'static str;
    fn put(&self, encoder: &mut Encoder);
    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError>;
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
}

/// Declares a struct that is a map of fixed shape. A first field marked `..` contributes its
/// own keys instead of standing under one.
macro_rules! shape {
    (
        $(#[$doc:meta])*
        pub struct $name:ident {
            $( .. $(#[$flat_doc:meta])* pub $flat:ident : $flat_type:ty, )?
            $( $(#[$field_doc:meta])* $key:literal => pub $field:ident : $type:ty, )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$flat_doc])* pub $flat: $flat_type, )?
            $( $(#[$field_doc])* pub $field: $type, )*
        }

        impl $name {
            /// The keys of the shape, in their order.
            #[must_use]
            pub fn fields() -> alloc::vec::Vec<$crate::field::FieldSpec> {
                #[allow(unused_mut, reason = "a shape may consist of one group")]
                let mut fields = alloc::vec::Vec::with_capacity(Self::COUNT);
                $( fields.extend(<$flat_type>::fields()); )?
                fields.extend([ $( $crate::field::FieldSpec {
                    key: $key,
                    name: stringify!($field),
                    shape: <$type as $crate::field::Field>::SHAPE,
                }, )* ]);
                fields
            }

            pub(crate) const COUNT: usize =
                0 $( + <$flat_type>::COUNT )? $( + { let _key: u64 = $key; 1 } )*;

            pub(crate) fn put_fields(&self, encoder: &mut $crate::cbor::Encoder) {
                $( self.$flat.put_fields(encoder); )?
                $(
                    encoder.uint($key);
                    $crate::field::Field::put(&self.$field, encoder);
                )*
                #[allow(path_statements, clippy::no_effect, reason = "a shape may be empty")]
                encoder;
            }

            pub(crate) fn take_fields(
                decoder: &mut $crate::cbor::Decoder<'_>,
            ) -> Result<Self, $crate::cbor::DecodeError> {
                $( let $flat = <$flat_type>::take_fields(decoder)?; )?
                $(
                    decoder.key($key)?;
                    let $field = $crate::field::Field::take(decoder)?;
                )*
                #[allow(path_statements, clippy::no_effect, reason = "a shape may be empty")]
                decoder;
                Ok(Self { $( $flat, )? $( $field, )* })
            }
        }

        impl $crate::field::Field for $name {
            const SHAPE: &'static str = stringify!($name);

            fn put(&self, encoder: &mut $crate::cbor::Encoder) {
                encoder.map(Self::COUNT);
                self.put_fields(encoder);
            }

            fn take(
                decoder: &mut $crate::cbor::Decoder<'_>,
            ) -> Result<Self, $crate::cbor::DecodeError> {
                decoder.shape($crate::field::count(Self::COUNT))?;
                decoder.nested(Self::take_fields)
            }
        }
    };
}
pub(crate) use shape;

/// Declares an enum that stands as an unsigned integer.
macro_rules! code {
    (
        $(#[$doc:meta])*
        pub enum $name:ident {
            $( $(#[$variant_doc:meta])* $variant:ident = $code:literal $text:literal, )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $( $(#[$variant_doc])* $variant, )* }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )* ];

            /// The stable number.
            #[must_use]
            pub const fn code(self) -> u64 {
                match self { $( Self::$variant => $code, )* }
            }

            /// The name in documents.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $text, )* }
            }

            /// The value of that number.
            #[must_use]
            pub const fn from_code(code: u64) -> Option<Self> {
                match code { $( $code => Some(Self::$variant), )* _ => None }
            }
        }

        impl $crate::field::Field for $name {
            const SHAPE: &'static str = concat!("uint ", stringify!($name));

            fn put(&self, encoder: &mut $crate::cbor::Encoder) {
                encoder.uint(self.code());
            }

            fn take(
                decoder: &mut $crate::cbor::Decoder<'_>,
            ) -> Result<Self, $crate::cbor::DecodeError> {
                let fault = decoder.fault($crate::cbor::Fault::Value);
                Self::from_code(decoder.uint()?).ok_or(fault)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub(crate) use code;

/// Encodes a shape whole.
pub(crate) fn encode<T: Field>(value: &T) -> Vec<u8> {
    let mut encoder = Encoder::with_capacity(512);
    value.put(&mut encoder);
    encoder.into_bytes()
}

/// Decodes a shape whole, with nothing after it.
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
        decoder.item().map(|item: Item<'_>| Self::from(item))
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
        if decoder.peek()? == Kind::Null {
            decoder.null()?;
            return Ok(None);
        }
        T::take(decoder).map(Some)
    }
}

/// A list; its element type is its shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List<T>(pub Vec<T>);

impl<T: Field> Field for List<T> {
    const SHAPE: &'static str = T::SHAPE;

    fn put(&self, encoder: &mut Encoder) {
        encoder.array(self.0.len());
        self.0.iter().for_each(|value| value.put(encoder));
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let mut values = Vec::new();
        decoder.each(|decoder| {
            values.push(T::take(decoder)?);
            Ok(())
        })?;
        Ok(Self(values))
    }
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
                let fault = decoder.fault(Fault::Value);
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
        let fault = decoder.fault(Fault::Value);
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
        let fault = decoder.fault(Fault::Value);
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
