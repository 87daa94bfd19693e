//! JSON, read once at the edge into canonical CBOR, and printed back for people and models.
//!
//! What is hashed is the CBOR, so a text has one meaning or none. Refused are, beyond what
//! RFC 8259 forbids: duplicate keys, integers outside [-2^63, 2^64-1], the integer `-0`, floats
//! that overflow, lone surrogates, a byte order mark, text that is not UTF-8, and whatever
//! nests deeper in CBOR than [`Profile::DATA`](crate::cbor::Profile::DATA) allows. Integers
//! stay exact. A literal with a point or an exponent is a float, even `1.0`.
//!
//! A map with exactly one key may be an escape:
//!
//! | in JSON | in CBOR |
//! |---|---|
//! | `{"$bytes": "AAE="}` (padded base64, one text for each byte string) | the byte string |
//! | `{"$ref": {"record": uint, "path": [text or uint, ...]}}` | the same map |
//! | `{"$lit": value}`: nothing inside is an escape | the same map, `value` as it stands |
//!
//! A `$bytes` or `$ref` of another form is refused. Any other map is data, `$` or not.

mod base64;
mod lex;
mod read;
mod write;

use alloc::string::String;

use crate::cbor::{Canonical, Decoder, Item, Kind};

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
    /// What was wrong.
    pub fault: JsonFault,
    /// Offset from the start of the text, in bytes.
    pub at: usize,
}

/// Reads one JSON value as canonical CBOR of the profile `DATA`.
///
/// Work and memory grow with the length of the text times its depth at most (64); how long a
/// text may be is the caller's limit.
///
/// # Errors
/// The first fault that was seen, with its place.
pub fn to_cbor(text: &[u8]) -> Result<Canonical, JsonError> {
    read::to_cbor(text)
}

/// Reads one JSON value as data: in canonical CBOR it is what it looks like, and nothing in it is
/// an escape.
///
/// # Errors
/// As [`to_cbor`].
pub fn to_data(text: &[u8]) -> Result<Canonical, JsonError> {
    read::to_data(text)
}

/// What `$ref`, `$lit` and `$bytes` mean in arguments that somebody else than the host wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Escapes {
    /// Nothing: they are data like all else.
    Data,
    /// What they mean in an envelope: whoever wrote the text may refer to results of its session.
    Read,
}

/// Reads a text as what stands under `args` in an envelope: one JSON value, which should be an
/// object; a text of whitespace alone is one without entries. It can set nothing else. Data that
/// would be an escape stands within one `$lit`, and may have a level less.
///
/// # Errors
/// As [`to_cbor`].
pub fn arguments(text: &[u8], escapes: Escapes) -> Result<Canonical, JsonError> {
    read::arguments(text, escapes)
}

/// Prints arguments, as they are before references are resolved, as compact JSON.
///
/// The law: `to_cbor(from_item(x)) == x` for every item `x` of the profile `DATA`
/// * whose maps have text keys,
/// * where, outside the value of a lone `$lit`, no map has the one key `$bytes`, and a map with
///   the one key `$ref` has the form of a reference,
/// * where, inside the value of a lone `$lit`, there is no byte string.
///
/// These are exactly the items that [`to_cbor`] can yield. Of the others, a lone `$bytes` map
/// and a lone `$ref` map of another form can only be data: each is wrapped in a `$lit`, so that
/// it reads back as data. A byte string inside a `$lit` is printed as elsewhere but reads back
/// as a map. Unsigned keys are printed as decimal text. An item that is nested too deep for the
/// profile, which only [`MapBuilder`](crate::cbor::MapBuilder) can make, is printed as `null`.
///
/// Control and other invisible characters are escaped, so text can't act on a terminal.
#[must_use]
pub fn from_item(item: Item<'_>) -> String {
    write::print(item, write::Form::Arguments)
}

/// Prints data, such as resolved arguments or a result, as compact JSON.
///
/// Here every map with one key that is `$bytes`, `$ref` or `$lit` is data and is wrapped in a
/// `$lit`; all else is printed as by [`from_item`]. The law: where each `{"$lit": v}` that
/// stands inside no other is replaced by `v` in `to_cbor(from_data(x))`, the outcome is `x`, for
/// every item `x` of the profile `DATA` whose maps have text keys, where no such map holds a
/// byte string, and which has a level of depth left for each wrapped map.
#[must_use]
pub fn from_data(item: Item<'_>) -> String {
    write::print(item, write::Form::Data)
}

/// Whether the next item is `{"path": [text or uint, ...], "record": uint}`.
fn is_reference(mut decoder: Decoder<'_>) -> bool {
    let mut read = || {
        decoder.shape(2)?;
        let path = decoder.text()?;
        decoder.each(|step| match step.peek()? {
            Kind::Text => step.text().map(|_| ()),
            _ => step.uint().map(|_| ()),
        })?;
        let record = decoder.text()?;
        decoder.uint()?;
        Ok::<bool, crate::cbor::DecodeError>(path == "path" && record == "record")
    };
    read().unwrap_or(false)
}
