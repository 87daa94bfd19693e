//! Lists of names in refusals: the nearest first, whole names only, and how many more there are.

use alloc::{format, string::String, vec::Vec};
use core::cmp::Reverse;

use crate::limits::DETAIL_BYTES_MAX;

/// Room for saying how many more there are.
const MORE_BYTES: usize = 24;

/// As many as fit into a refusal, as they stand.
pub fn summary<S: AsRef<str>>(parts: impl IntoIterator<Item = S>) -> String {
    let (mut text, mut more) = (String::new(), 0_usize);
    for part in parts {
        let part = part.as_ref();
        let len = text.len().saturating_add(part.len()).saturating_add(MORE_BYTES);
        if more > 0 || len > DETAIL_BYTES_MAX {
            more = more.saturating_add(1);
            continue;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(part);
    }
    match (more, text.is_empty()) {
        (0, _) => text,
        (more, false) => format!("{text} and {more} more"),
        (more, true) => format!("one of {more}"),
    }
}

/// The same, those that resemble `got` most first: of many tools, the one that was meant is shown.
pub fn nearest<'a>(got: &str, names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_by_key(|name| Reverse(alike(got, name)));
    summary(names)
}

/// How many bytes two names share at their beginnings and ends: a slip leaves most of a name.
fn alike(a: &str, b: &str) -> usize {
    let same = |(x, y): &(u8, u8)| x.eq_ignore_ascii_case(y);
    let begin = a.bytes().zip(b.bytes()).take_while(same).count();
    let end = a.bytes().rev().zip(b.bytes().rev()).take_while(same).count();
    begin.saturating_add(end)
}
