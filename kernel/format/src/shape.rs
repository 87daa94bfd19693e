//! The macros by which everything is declared that stands in a document, in the log or on the
//! socket: each value has one form, and its struct or enum is the place where that is written.

/// Declares a struct that is a map of fixed shape ([`Shape`](crate::field::Shape)): each field is a
/// [`Field`](crate::field::Field) under its integer key. A first field marked `..` contributes its
/// own keys instead of standing under one. A list of values that are not bytes may say how many it
/// takes at most: `[..MOST]`. Fields that a later version added stand last, in `maybe { .. }`. The
/// key is absent where the field is `None`, so that older data reads and hashes as before.
#[macro_export]
macro_rules! shape {
    (
        $(#[$doc:meta])*
        $vis:vis struct $name:ident {
            $( .. $(#[$flat_doc:meta])* $flat_vis:vis $flat:ident : $flat_type:ty, )?
            $(
                $(#[$field_doc:meta])*
                $key:literal => $field_vis:vis $field:ident : $type:ty $([..$most:expr])?,
            )*
            $( maybe { $(
                $(#[$maybe_doc:meta])*
                $maybe_key:literal => $maybe_vis:vis $maybe:ident : $maybe_type:ty,
            )+ } )?
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        $vis struct $name {
            $( $(#[$flat_doc])* $flat_vis $flat: $flat_type, )?
            $( $(#[$field_doc])* $field_vis $field: $type, )*
            $( $( $(#[$maybe_doc])* $maybe_vis $maybe: Option<$maybe_type>, )+ )?
        }

        impl $crate::field::Shape for $name {
            const COUNT: usize =
                0 $( + <$flat_type as $crate::field::Shape>::COUNT )?
                $( + { let _key: u64 = $key; 1 } )*;
            const WHOLE: bool = $crate::shape!(@whole $($($maybe_key)+)?);

            fn fields() -> $crate::field::Specs {
                #[allow(unused_mut, reason = "a shape may consist of one group")]
                let mut fields = $crate::field::Specs::with_capacity(Self::COUNT);
                $( fields.extend(<$flat_type as $crate::field::Shape>::fields()); )?
                fields.extend([ $( $crate::field::FieldSpec {
                    key: $key,
                    name: stringify!($field),
                    shape: <$type as $crate::field::Field>::SHAPE,
                    maybe: false,
                }, )* ]);
                $( $( fields.push($crate::field::FieldSpec {
                    key: $maybe_key,
                    name: stringify!($maybe),
                    shape: <$maybe_type as $crate::field::Field>::SHAPE,
                    maybe: true,
                }); )+ )?
                fields
            }

            fn put_fields(&self, encoder: &mut $crate::Encoder) {
                $( const { assert!(<$flat_type as $crate::field::Shape>::WHOLE) }; )?
                $( $crate::field::Shape::put_fields(&self.$flat, encoder); )?
                $(
                    encoder.uint($key);
                    $crate::field::Field::put(&self.$field, encoder);
                )*
                #[allow(path_statements, clippy::no_effect, reason = "a shape may be empty")]
                encoder;
            }

            fn take_fields(
                decoder: &mut $crate::Decoder<'_>,
            ) -> Result<Self, $crate::DecodeError> {
                $( let $flat = <$flat_type as $crate::field::Shape>::take_fields(decoder)?; )?
                $(
                    decoder.key($key)?;
                    let $field = $crate::shape!(@take decoder $([..$most])?)?;
                )*
                #[allow(path_statements, clippy::no_effect, reason = "a shape may be empty")]
                decoder;
                Ok(Self { $( $flat, )? $( $field, )* $( $( $maybe: None, )+ )? })
            }
        }

        impl $crate::field::Field for $name {
            const SHAPE: &'static str = stringify!($name);

            fn put(&self, encoder: &mut $crate::Encoder) {
                let keys = <Self as $crate::field::Shape>::COUNT;
                $( $(
                    let keys = if self.$maybe.is_some() { keys.saturating_add(1) } else { keys };
                )+ )?
                encoder.map(keys);
                $crate::field::Shape::put_fields(self, encoder);
                $( $(
                    if let Some(held) = &self.$maybe {
                        encoder.uint($maybe_key);
                        $crate::field::Field::put(held, encoder);
                    }
                )+ )?
            }

            fn take(
                decoder: &mut $crate::Decoder<'_>,
            ) -> Result<Self, $crate::DecodeError> {
                let count = $crate::field::count(<Self as $crate::field::Shape>::COUNT);
                $crate::shape!(@body decoder count $( $(, $maybe_key $maybe)+ )?)
            }
        }
    };
    (@whole) => { true };
    (@whole $($maybe_key:literal)+) => { false };
    (@body $decoder:ident $count:ident) => {{
        $decoder.shape($count)?;
        $decoder.nested(<Self as $crate::field::Shape>::take_fields)
    }};
    (@body $decoder:ident $count:ident $(, $maybe_key:literal $maybe:ident)+) => {{
        let most = const { [ $( stringify!($maybe) ),+ ].len() };
        let mut more = $decoder.shape_or_more($count, $crate::field::count(most))?;
        $decoder.nested(|decoder| {
            let mut held = <Self as $crate::field::Shape>::take_fields(decoder)?;
            $(
                if more > 0 && decoder.key_if($maybe_key)? {
                    held.$maybe = Some($crate::field::Field::take(decoder)?);
                    more = more.saturating_sub(1);
                }
            )+
            // Keys that are left are none of these, or not in their order.
            if more > 0 { Err(decoder.fault($crate::DecodeFault::Key)) } else { Ok(held) }
        })
    }};
    (@take $decoder:ident) => { $crate::field::Field::take($decoder) };
    (@take $decoder:ident [..$most:expr]) => { $crate::field::Field::take_list($decoder, $most) };
}

/// Declares an enum that stands as an unsigned integer.
#[macro_export]
macro_rules! code {
    (
        $(#[$doc:meta])*
        $vis:vis enum $name:ident {
            $( $(#[$variant_doc:meta])* $variant:ident = $code:literal $text:literal, )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name { $( $(#[$variant_doc])* $variant, )* }

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

            fn put(&self, encoder: &mut $crate::Encoder) {
                encoder.uint(self.code());
            }

            fn take(
                decoder: &mut $crate::Decoder<'_>,
            ) -> Result<Self, $crate::DecodeError> {
                let fault = decoder.fault($crate::DecodeFault::Value);
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

/// Declares an enum that stands as an array of two: which variant it is, as an unsigned integer,
/// and what that holds, `null` for nothing. Lists are bounded as in a [`shape!`](crate::shape).
#[macro_export]
macro_rules! choice {
    (
        $(#[$doc:meta])*
        $vis:vis enum $name:ident {
            $(
                $(#[$variant_doc:meta])*
                $number:literal => $variant:ident $( ( $type:ty $([..$most:expr])? ) )?,
            )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        $vis enum $name { $( $(#[$variant_doc])* $variant $( ($type) )?, )* }

        impl $crate::field::Field for $name {
            const SHAPE: &'static str = concat!("array [uint ", stringify!($name), ", ..]");

            fn put(&self, encoder: &mut $crate::Encoder) {
                encoder.array(2);
                match self {
                    $( Self::$variant $( ($crate::choice!(@bind held $type)) )? => {
                        encoder.uint($number);
                        $crate::choice!(@put encoder $(held $type)?);
                    } )*
                }
            }

            fn take(
                decoder: &mut $crate::Decoder<'_>,
            ) -> Result<Self, $crate::DecodeError> {
                let fault = decoder.fault($crate::DecodeFault::Value);
                if decoder.array()? != 2 {
                    return Err(fault);
                }
                decoder.nested(|decoder| {
                    let fault = decoder.fault($crate::DecodeFault::Value);
                    match decoder.uint()? {
                        $( $number => $crate::choice!(
                            @take decoder $name $variant $( $type, $([..$most])? )?
                        ), )*
                        _ => Err(fault),
                    }
                })
            }
        }
    };
    (@bind $held:ident $type:ty) => { $held };
    (@put $encoder:ident) => { $encoder.null() };
    (@put $encoder:ident $held:ident $type:ty) => { $crate::field::Field::put($held, $encoder) };
    (@take $decoder:ident $name:ident $variant:ident) => {
        $decoder.null().map(|()| $name::$variant)
    };
    (@take $decoder:ident $name:ident $variant:ident $type:ty, $([..$most:expr])?) => {
        $crate::shape!(@take $decoder $([..$most])?).map($name::$variant)
    };
}

/// Declares a set of flags, which stands as an unsigned integer: each name is one bit, and a bit
/// that has none is refused. With `open` any bits are read, for whoever has a word of its own for
/// those that are not known.
#[macro_export]
macro_rules! flags {
    (
        $(#[$doc:meta])*
        $vis:vis struct $name:ident {
            $( $(#[$flag_doc:meta])* $flag:ident = $bit:literal, )*
        }
    ) => {
        $crate::flags!(@set $(#[$doc])* $vis $name { $( $(#[$flag_doc])* $flag = $bit, )* });
        $crate::flags!(@field $name |bits: u64| bits & !$name::KNOWN.bits() == 0);
    };
    (
        $(#[$doc:meta])*
        $vis:vis open struct $name:ident {
            $( $(#[$flag_doc:meta])* $flag:ident = $bit:literal, )*
        }
    ) => {
        $crate::flags!(@set $(#[$doc])* $vis $name { $( $(#[$flag_doc])* $flag = $bit, )* });
        $crate::flags!(@field $name |_: u64| true);
    };
    (@set $(#[$doc:meta])* $vis:vis $name:ident {
        $( $(#[$flag_doc:meta])* $flag:ident = $bit:literal, )*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis struct $name(u64);

        impl $name {
            $( $(#[$flag_doc])* pub const $flag: Self = Self($bit); )*
            /// All that there are.
            pub const KNOWN: Self = Self(0 $( | $bit )*);

            /// The bits.
            #[must_use]
            pub const fn bits(self) -> u64 {
                self.0
            }

            /// The bits of both.
            #[must_use]
            pub const fn and(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// These bits if the condition holds; else none.
            #[must_use]
            pub const fn when(self, holds: bool) -> Self {
                if holds { self } else { Self(0) }
            }

            /// The bits that are not in `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            /// True if it has all bits of `other`.
            #[must_use]
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }
    };
    (@field $name:ident $is_known:expr) => {
        impl $crate::field::Field for $name {
            const SHAPE: &'static str = "uint bits";

            fn put(&self, encoder: &mut $crate::Encoder) {
                encoder.uint(self.0);
            }

            fn take(
                decoder: &mut $crate::Decoder<'_>,
            ) -> Result<Self, $crate::DecodeError> {
                let fault = decoder.fault($crate::DecodeFault::Value);
                let bits = decoder.uint()?;
                if ($is_known)(bits) { Ok(Self(bits)) } else { Err(fault) }
            }
        }
    };
}
