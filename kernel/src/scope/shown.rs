//! Text for error messages: escaped, and never long.

use core::fmt::{self, Write as _};

/// Characters of one name that a message shows: enough to know it by.
const CHARS_MAX: usize = 120;

/// Parts of one scope that a message shows: a model reads them all on every refusal.
const PARTS_MAX: usize = 16;

/// Text whose control and invisible characters are escaped and whose end may be cut.
pub(super) struct Shown<'a>(pub(super) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars().take(CHARS_MAX) {
            match char {
                '\'' | '"' => f.write_char(char)?,
                _ => write!(f, "{}", char.escape_debug())?,
            }
        }
        let cut = self.0.chars().nth(CHARS_MAX).is_some();
        if cut { f.write_str("...") } else { Ok(()) }
    }
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
