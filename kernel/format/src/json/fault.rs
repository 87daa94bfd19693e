//! JSON faults, and the meaning of escapes.

/// One way in which a text is not JSON that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum JsonFault {
    /// The text ends inside a value, or holds none.
    #[error("the text ends before its value does")]
    End,
    /// Something follows the value.
    #[error("something follows the value")]
    Trailing,
    /// A character that can't stand here.
    #[error("a character can't stand here")]
    Unexpected,
    /// A byte order mark before the value.
    #[error("a byte order mark is not allowed")]
    Bom,
    /// Text that is not UTF-8.
    #[error("the text is not UTF-8")]
    Utf8,
    /// More nesting than the profile allows.
    #[error("nested too deep")]
    Depth,
    /// A key that stands twice in one map.
    #[error("a key stands twice")]
    DuplicateKey,
    /// A number that lacks digits.
    #[error("a number lacks digits")]
    Number,
    /// A number with a leading zero.
    #[error("a number begins with a needless zero")]
    LeadingZero,
    /// An integer outside [-2^63, 2^64-1].
    #[error("an integer is out of range")]
    IntRange,
    /// `-0`, which integers lack; `-0.0` is fine.
    #[error("-0 is not an integer")]
    NegativeZero,
    /// A float beyond the largest finite one.
    #[error("a float is out of range")]
    FloatRange,
    /// A control character inside a string.
    #[error("a control character stands unescaped in a string")]
    Control,
    /// An escape that JSON doesn't have.
    #[error("an unknown escape in a string")]
    Escape,
    /// Half of a surrogate pair.
    #[error("a lone surrogate in a string")]
    Surrogate,
    /// A `$bytes` whose value is not padded standard base64 in canonical form.
    #[error("$bytes needs padded standard base64")]
    Bytes,
    /// A `$ref` whose value has another form than a record and a path.
    #[error("$ref needs {{\"record\": number, \"path\": [text or number, ...]}}")]
    Reference,
}

/// A fault and the offset of the byte at which it was seen.
///
/// A fault of a whole map (`Depth`, `Bytes`, `Reference`) is seen at its opening brace, that of
/// a number at its start, that of an escape at its backslash, a duplicate key at its second
/// place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {fault}")]
pub struct JsonError {
    /// The fault.
    pub fault: JsonFault,
    /// Offset from the start of the text, in bytes.
    pub at: usize,
}

/// The meaning of `$ref`, `$lit` and `$bytes` in arguments that another author than the host wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Escapes {
    /// None: they are data like any other.
    Data,
    /// Their meaning in an envelope: the text's author may refer to results of its session.
    Read,
}
