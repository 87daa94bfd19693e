//! Conditions and values in words, for people and models. All of it is escaped and short.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::document::{Ask, Constant};
use crate::value::{Other, Value};

/// Longest text of one constant or value, in characters.
const CHARS_MAX: usize = 80;
/// Most constants of a list that are shown.
const SHOWN_MAX: usize = 16;
/// Most elements of a value that are shown.
const ELEMENTS_MAX: usize = 4;

/// Text in quotes, escaped, cut where it is long.
pub(super) fn quoted(text: &str) -> String {
    let mut end = text.char_indices().skip(CHARS_MAX);
    match end.next() {
        Some((at, _)) => format!("{:?}...", text.get(..at).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

/// Text without quotes, escaped, cut where it is long.
pub(super) fn bare(text: &str) -> String {
    let mut short: String = text.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(CHARS_MAX).is_some() {
        short.push_str("...");
    }
    short
}

/// The first of a list, and how many more there are.
pub(super) fn list(all: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let more = all.len().saturating_sub(most);
    let shown = all.take(most).collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

fn constant(constant: &Constant) -> String {
    match constant {
        Constant::Bool(value) => value.to_string(),
        Constant::Int(n) => n.to_string(),
        Constant::Text(text) => quoted(text),
    }
}

/// An operator with its constants, as a document has them.
pub(super) struct Shown<'a>(pub(super) &'a Ask);

impl fmt::Display for Shown<'_> {
    /// `in "a", "b"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |f: &mut fmt::Formatter<'_>, op: &str, value: &str| write!(f, "{op} {value}");
        match self.0 {
            Ask::Eq(value) => with(f, "eq", &constant(value)),
            Ask::In(values) => with(f, "in", &list(values.iter().map(constant), SHOWN_MAX)),
            Ask::Exists => f.write_str("exists"),
            Ask::Missing => f.write_str("missing"),
            Ask::Schema(kind) => with(f, "schema", kind.name()),
            Ask::Lt(n) => write!(f, "lt {n}"),
            Ask::Le(n) => write!(f, "le {n}"),
            Ask::Gt(n) => write!(f, "gt {n}"),
            Ask::Ge(n) => write!(f, "ge {n}"),
            Ask::Prefix(text) => with(f, "prefix", &quoted(text)),
            Ask::Suffix(text) => with(f, "suffix", &quoted(text)),
            Ask::Within(text) => with(f, "within", &quoted(text)),
            Ask::Domain(host) => write!(f, "domain {host}"),
            Ask::Cidr(block) => write!(f, "cidr {block}"),
        }
    }
}

/// The allowed values of a test, or of its opposite.
pub(super) fn wanted(ask: &Ask, is_negated: bool) -> String {
    let plain = |value: &Constant| match value {
        Constant::Text(text) => bare(text),
        other => constant(other),
    };
    let positive = match (ask, is_negated) {
        (Ask::Exists, false) | (Ask::Missing, true) => return String::from("present"),
        (Ask::Missing, false) | (Ask::Exists, true) => return String::from("left out"),
        (Ask::Lt(n), false) | (Ask::Ge(n), true) => return format!("less than {n}"),
        (Ask::Le(n), false) | (Ask::Gt(n), true) => return format!("at most {n}"),
        (Ask::Gt(n), false) | (Ask::Le(n), true) => return format!("more than {n}"),
        (Ask::Ge(n), false) | (Ask::Lt(n), true) => return format!("at least {n}"),
        (Ask::Eq(value), _) => format!("one of: {}", plain(value)),
        (Ask::In(values), _) => format!("one of: {}", list(values.iter().map(plain), SHOWN_MAX)),
        (Ask::Schema(kind), _) => format!("of type {}", kind.name()),
        (Ask::Prefix(text), _) => format!("begins with {}", quoted(text)),
        (Ask::Suffix(text), _) => format!("ends with {}", quoted(text)),
        (Ask::Within(text), _) => format!("below {}", bare(text)),
        (Ask::Domain(host), _) => format!("a host of {host}"),
        (Ask::Cidr(block), _) => format!("an address of {block}"),
    };
    if is_negated { format!("not {positive}") } else { positive }
}

pub(super) fn value(seen: &Value<'_>) -> String {
    match seen {
        Value::Missing => String::from("missing"),
        Value::Erased => String::from("erased"),
        Value::Bool(value) => value.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Text(text) => quoted(text),
        Value::Agent(agent) => bare(agent),
        Value::Path(path) => path.to_string(),
        Value::Tree(path) => format!("all below {path}"),
        Value::Host(host) => host.to_string(),
        Value::Address(address) => address.to_string(),
        Value::Other(Other::Null) => String::from("null"),
        Value::Other(Other::Float) => String::from("a float"),
        Value::Other(Other::Bytes) => String::from("bytes"),
        Value::Other(Other::EmptyList) => String::from("an empty list"),
        Value::Other(Other::Map) => String::from("a map"),
        Value::List(all) => format!("[{}]", list(all.iter().map(value), ELEMENTS_MAX)),
        Value::Resources(all) => list(all.iter().map(value), ELEMENTS_MAX),
    }
}
