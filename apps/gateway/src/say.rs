//! What an operator is told: on standard error, since standard output is the protocol's.

use std::io::Write;

/// Longest line, in characters: what a server names must not fill a screen.
const CHARS_MAX: usize = 600;

/// Says it in one line, without what a terminal would obey.
pub(crate) fn say(text: &str) {
    // Nobody may listen; nothing depends on it.
    writeln!(std::io::stderr().lock(), "syscap mcp: {}", plain(text)).ok();
}

/// Characters that move the cursor, colour the screen, turn the direction of writing or can't be
/// seen stand as JSON writes them.
fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(CHARS_MAX));
    for c in text.chars().take(CHARS_MAX) {
        if is_hidden(c) {
            let mut units = [0; 2];
            let units = c.encode_utf16(&mut units);
            units.iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The rule of the command line's own output.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{ad}' | '\u{180e}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides_in_a_line() {
        assert_eq!(plain("caf\u{e9} \\"), "caf\u{e9} \\");
        assert_eq!(plain("a\u{1b}[31m\n"), "a\\u001b[31m\\u000a");
        assert_eq!(plain("\u{202e}\u{200b}\u{e0041}"), "\\u202e\\u200b\\udb40\\udc41");
        assert_eq!(plain(&"x".repeat(CHARS_MAX + 1)).len(), CHARS_MAX);
    }
}
