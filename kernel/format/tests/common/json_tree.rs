//! What JSON means, by serde_json and by the rules of the kernel's page on it.
#![allow(dead_code, clippy::unwrap_used, reason = "tests; not every test uses everything")]

use serde_json::Value;
use syscap_format::json::{JsonError, JsonFault, to_cbor};

use super::tree::{Tree, walk};

/// Whether escapes are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Arguments,
    Literal,
}

pub(crate) fn read(text: impl AsRef<[u8]>) -> Result<Tree, JsonError> {
    to_cbor(text.as_ref()).map(|cbor| walk(cbor.item()))
}

/// The fault and its place.
pub(crate) fn refusal(text: impl AsRef<[u8]>) -> (JsonFault, usize) {
    let error = to_cbor(text.as_ref()).unwrap_err();
    (error.fault, error.at)
}

/// The only entry of a map with text keys.
pub(crate) fn lone(tree: &Tree) -> Option<(&str, &Tree)> {
    match tree {
        Tree::Texts(entries) => match entries.as_slice() {
            [(key, value)] => Some((key, value)),
            _ => None,
        },
        _ => None,
    }
}

pub(crate) fn is_reference(value: &Tree) -> bool {
    let Tree::Texts(entries) = value else { return false };
    match entries.as_slice() {
        [(path, Tree::Array(steps)), (record, Tree::Uint(_))] => {
            let fine = steps.iter().all(|step| matches!(step, Tree::Text(_) | Tree::Uint(_)));
            path == "path" && record == "record" && fine
        }
        _ => false,
    }
}

/// Whether the tree is one that `to_cbor` can yield.
pub(crate) fn is_yield(tree: &Tree, mode: Mode) -> bool {
    let mode = match (mode, lone(tree), tree) {
        (Mode::Literal, _, Tree::Bytes(_)) | (_, _, Tree::Uints(_)) => return false,
        (Mode::Arguments, Some(("$bytes", _)), _) => return false,
        (Mode::Arguments, Some(("$ref", value)), _) if !is_reference(value) => return false,
        (Mode::Arguments, Some(("$lit", _)), _) => Mode::Literal,
        _ => mode,
    };
    tree.children().into_iter().all(|child| is_yield(child, mode))
}

/// What serde_json reads, with the escapes applied as documented; `None` where an escape is
/// malformed.
pub(crate) fn meaning(value: &Value, mode: Mode) -> Option<Tree> {
    Some(match value {
        Value::Null => Tree::Null,
        Value::Bool(value) => Tree::Bool(*value),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => Tree::Uint(value),
            (None, Some(value)) => Tree::Negative(u64::try_from(-1 - value).unwrap()),
            _ => Tree::float(number.as_f64().unwrap()),
        },
        Value::String(text) => Tree::text(text),
        Value::Array(items) => {
            Tree::Array(items.iter().map(|item| meaning(item, mode)).collect::<Option<_>>()?)
        }
        Value::Object(map) => {
            let only = map.iter().next().filter(|_| map.len() == 1 && mode == Mode::Arguments);
            let inner = match only.map(|(key, value)| (key.as_str(), value)) {
                Some(("$bytes", Value::String(text))) => return base64(text).map(Tree::Bytes),
                Some(("$bytes", _)) => return None,
                Some(("$ref", value)) if !is_reference(&meaning(value, mode)?) => return None,
                Some(("$lit", _)) => Mode::Literal,
                _ => mode,
            };
            let entry = |(key, value): (&String, _)| Some((key.clone(), meaning(value, inner)?));
            Tree::map(map.iter().map(entry).collect::<Option<Vec<_>>>()?)
        }
    })
}

/// Equal, but for the last digits of floats: serde_json reads them approximately unless a
/// feature says otherwise. `number` tests hold ours against `str::parse`.
pub(crate) fn alike(ours: &Tree, theirs: &Tree) -> bool {
    match (ours, theirs) {
        (Tree::Float(ours), Tree::Float(theirs)) => ours.abs_diff(*theirs) <= 2,
        (Tree::Array(ours), Tree::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| alike(a, b))
        }
        (Tree::Texts(ours), Tree::Texts(theirs)) => {
            let mut pairs = ours.iter().zip(theirs);
            ours.len() == theirs.len() && pairs.all(|((k, a), (l, b))| k == l && alike(a, b))
        }
        _ => ours == theirs,
    }
}

/// A reading of base64 that goes bit by bit.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bits = Vec::new();
    for digit in digits.chars() {
        let value = alphabet.find(digit)?;
        bits.extend((0..6).rev().map(|bit| value >> bit & 1));
    }
    let (whole, rest) = bits.as_chunks::<8>();
    let byte = |bits: &[usize; 8]| bits.iter().fold(0, |byte, bit| byte << 1 | bit);
    let fine = rest.len() == 2 * padding && rest.iter().all(|bit| *bit == 0);
    fine.then(|| whole.iter().map(|bits| u8::try_from(byte(bits)).unwrap()).collect())
}
