//! Messages for the operator: on standard error, since standard output is the protocol's.

use std::io::Write;

/// Longest line, in characters: what a server names must not fill a screen.
const CHARS_MAX: usize = 600;

/// Says it in one line, without what a terminal would obey.
pub(crate) fn say(text: &str) {
    // Nobody may listen; nothing depends on it.
    writeln!(std::io::stderr().lock(), "syscap mcp: {}", plain(text)).ok();
}

/// A text without anything that acts on a terminal or can't be seen, cut to a line's length.
pub(crate) fn plain(text: &str) -> String {
    let short: String = text.chars().take(CHARS_MAX).collect();
    syscap::plain::plain(&short).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_line_escapes_control_characters() {
        assert_eq!(plain("caf\u{e9} \\"), "caf\u{e9} \\");
        assert_eq!(plain("a\u{1b}[31m\n"), "a\\u001b[31m\\u000a");
        assert_eq!(plain("\u{202e}\u{200b}\u{e0041}"), "\\u202e\\u200b\\udb40\\udc41");
        assert_eq!(plain(&"x".repeat(CHARS_MAX + 1)).len(), CHARS_MAX);
    }
}
