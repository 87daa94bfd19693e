//! Decoding faults, and their positions.

/// One way in which bytes are not canonical CBOR of the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeFault {
    /// The input ends inside an item.
    #[error("the input ends inside an item")]
    End,
    /// Bytes follow the item.
    #[error("bytes follow the item")]
    Trailing,
    /// An integer or a length is not in its shortest form.
    #[error("an integer or length is not in its shortest form")]
    NonShortest,
    /// An indefinite length, or a break.
    #[error("indefinite lengths are not allowed")]
    Indefinite,
    /// Additional information 28 to 30.
    #[error("reserved additional information")]
    Reserved,
    /// A tag.
    #[error("tags are not allowed")]
    Tag,
    /// A simple value other than false, true and null.
    #[error("only false, true and null are allowed as simple values")]
    Simple,
    /// A float where the profile has none, or not in its shortest form.
    #[error("a float is not allowed here, or not in its shortest form")]
    Float,
    /// NaN or an infinity.
    #[error("NaN and infinities are not allowed")]
    NotFinite,
    /// An integer outside [-2^63, 2^64-1].
    #[error("an integer is out of range")]
    IntRange,
    /// Text that is not UTF-8.
    #[error("text is not UTF-8")]
    Utf8,
    /// More nesting than the profile allows.
    #[error("nested too deep")]
    Depth,
    /// Keys not in ascending order.
    #[error("map keys are not in ascending order")]
    KeyOrder,
    /// A key that stands twice.
    #[error("a map key stands twice")]
    DuplicateKey,
    /// A key that is neither an unsigned integer nor text, or of another type than the first.
    #[error("map keys must be all unsigned integers or all text")]
    KeyType,
    /// A length beyond the input.
    #[error("a length exceeds the input")]
    Length,
    /// Another type of value than the schema asks for.
    #[error("a value has the wrong type")]
    Type,
    /// A key that the schema does not know, or lacks.
    #[error("a key is unknown or missing")]
    Key,
    /// A value that the schema does not allow.
    #[error("a value is not allowed here")]
    Value,
}

/// A fault and the offset of the byte at which it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {fault}")]
pub struct DecodeError {
    /// The fault.
    pub fault: DecodeFault,
    /// Offset from the start of the input, in bytes.
    pub at: usize,
}
