//! What an operator is told: on standard error, since standard output is the protocol's.

use std::io::Write;

/// Longest line, in characters: what a server names must not fill a screen.
const CHARS_MAX: usize = 600;

/// Says it in one line, without what a terminal would obey.
pub(crate) fn say(text: &str) {
    let plain: String =
        text.chars().take(CHARS_MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    // Nobody may listen; nothing depends on it.
    writeln!(std::io::stderr().lock(), "syscap mcp: {plain}").ok();
}
