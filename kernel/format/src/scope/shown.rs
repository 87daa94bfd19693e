//! Text for error messages: escaped, and never long.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use super::{Ints, Resource};
use crate::summary::nearest;

/// Characters of one name that a message shows: enough to know it by.
const CHARS_MAX: usize = 120;

/// Parts of one scope that a message shows: a model reads them all on every refusal.
const PARTS_MAX: usize = 16;

/// Text whose control and invisible characters are escaped and whose end may be cut.
pub(super) struct Shown<'a>(pub(super) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().take(CHARS_MAX).try_for_each(|char| escaped(char, f))?;
        let cut = self.0.chars().nth(CHARS_MAX).is_some();
        if cut { f.write_str("...") } else { Ok(()) }
    }
}

/// Text whose control and invisible characters are escaped, all of it.
pub(super) struct Whole<'a>(pub(super) &'a str);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|char| escaped(char, f))
    }
}

fn escaped(char: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match char {
        '\'' | '"' => f.write_char(char),
        _ => write!(f, "{}", char.escape_debug()),
    }
}

/// The permitted values of a list, the most similar to the refused one first.
pub(super) fn one_of<T: fmt::Display>(parts: &[T], refused: &Resource) -> String {
    let names: Vec<String> = parts.iter().map(ToString::to_string).collect();
    format!("one of: {}", nearest(&refused.to_string(), names.iter().map(String::as_str)))
}

/// The permitted integers.
pub(super) fn from(scope: &Ints) -> String {
    let text = format!("{scope}");
    if text.contains(" to ") { format!("from {text}") } else { format!("one of: {text}") }
}

/// The first parts of a list, and how many more there are.
pub(super) fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, parts: &[T]) -> fmt::Result {
    for (n, part) in parts.iter().take(PARTS_MAX).enumerate() {
        if n > 0 {
            f.write_str(", ")?;
        }
        fmt::Display::fmt(part, f)?;
    }
    match parts.len().saturating_sub(PARTS_MAX) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}
