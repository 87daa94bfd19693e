//! JSON, read once at the edge into canonical CBOR, and printed back for people and models.
//!
//! The hash covers the CBOR, so a text has one meaning or none. Refused are, beyond what RFC 8259
//! forbids: duplicate keys, integers outside [-2^63, 2^64-1], the integer `-0`, floats that
//! overflow, lone surrogates, a byte order mark, text that is not UTF-8, and whatever nests deeper
//! in CBOR than [`Profile::DATA`](crate::cbor::Profile::DATA) allows. Integers stay exact. A
//! literal with a point or an exponent is a float, even `1.0`.
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
mod fault;
mod lex;
mod read;
mod reference;
mod write;

pub use fault::{Escapes, JsonError, JsonFault};

use alloc::string::String;

use crate::cbor::{Canonical, Item};

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
/// These are exactly the items that [`to_cbor`] can yield. A lone `$bytes` map, or a lone `$ref`
/// map of another form, can only be data: each is wrapped in a `$lit`, so that it reads back as
/// data. A byte string inside a `$lit` is printed as elsewhere but reads back as a map. Unsigned
/// keys are printed as decimal text. An item that is nested too deep for the profile, which only
/// [`MapBuilder`](crate::cbor::MapBuilder) can make, is printed as `null`.
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
