//! Text that acts on nothing: neither on a terminal nor on whoever reads it.

use std::borrow::Cow;
use std::ffi::OsStr;

/// Text without characters that move the cursor, colour the screen, turn the direction of writing
/// or can't be seen: they stand as JSON writes them, so that a line of JSON stays what it is.
///
/// ```
/// assert_eq!(syscap::plain::plain("a\u{1b}[31m"), "a\\u001b[31m");
/// ```
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|c| push_plain(&mut shown, c));
    Cow::Owned(shown)
}

/// A text as one word of a command line for a POSIX shell: as it is where a shell takes it for just
/// that, else in single quotes.
///
/// ```
/// assert_eq!(syscap::plain::shell_word("/srv/x"), "/srv/x");
/// assert_eq!(syscap::plain::shell_word("it's here"), r"'it'\''s here'");
/// ```
#[must_use]
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let as_it_is = |b: u8| b.is_ascii_alphanumeric() || b"/._-+:,@%".contains(&b);
    if !text.is_empty() && text.bytes().all(as_it_is) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

/// The same of a text that need not be UTF-8: such a word stands in `$'..'`, as Bash writes it.
#[must_use]
pub fn os_word(text: &OsStr) -> Cow<'_, str> {
    let Some(text) = text.to_str() else {
        let bytes = text.as_encoded_bytes();
        return Cow::Owned(format!("$'{}'", bytes.escape_ascii()));
    };
    shell_word(text)
}

/// Puts one character behind a text, as [`plain`] writes it.
pub(crate) fn push_plain(shown: &mut String, c: char) {
    if !is_hidden(c) {
        shown.push(c);
        return;
    }
    let mut units = [0; 2];
    let units = c.encode_utf16(&mut units);
    units.iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{e0000}'..='\u{e0fff}')
        // Letters, marks and a pattern that are drawn as nothing, or as a space.
        || matches!(c, '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}')
        || matches!(c, '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}')
        || matches!(c, '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}')
        || matches!(c, '\u{1d173}'..='\u{1d17a}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_never_moves_the_cursor() {
        assert_eq!(plain("caf\u{e9} \\ \"x\""), "caf\u{e9} \\ \"x\"");
        assert_eq!(
            plain("a\u{1b}[31m\r\n\u{7f}\u{9b}"),
            "a\\u001b[31m\\u000d\\u000a\\u007f\\u009b"
        );
        assert_eq!(plain("\u{202e}\u{2066}\u{feff}"), "\\u202e\\u2066\\ufeff");
        // Text that nobody sees, and a model reads.
        assert_eq!(plain("a\u{e0041}\u{200b}"), "a\\udb40\\udc41\\u200b");
    }
}
