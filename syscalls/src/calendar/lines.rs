//! Content lines: RFC 5545, 3.1.

use super::skip::Skip;

/// A content line: `NAME;PARAM=VALUE:VALUE`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    /// From the first semicolon to the colon.
    params: &'a str,
    pub(super) value: &'a str,
}

/// The text of a file with its folded lines joined. A fold may split a letter, so it is undone
/// before the bytes are read as text.
pub(super) fn unfolded(bytes: &[u8]) -> Result<String, Skip> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut joined = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte == b'\n' && rest.next_if(|next| matches!(next, b' ' | b'\t')).is_some() {
            if joined.last() == Some(&b'\r') {
                joined.pop();
            }
            continue;
        }
        joined.push(byte);
    }
    String::from_utf8(joined).map_err(|_| Skip::NotText)
}

/// The lines of an unfolded text that are not empty.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).filter(|l| !l.is_empty())
}

impl<'a> Line<'a> {
    pub(super) fn parse(line: &'a str) -> Result<Self, Skip> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let end = line.find([';', ':']).ok_or(Skip::Malformed)?;
        let (name, rest) = line.split_at(end);
        let colon = unquoted(rest, b':').ok_or(Skip::Malformed)?;
        let (params, value) = rest.split_at(colon);
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(Skip::Malformed);
        }
        Ok(Self { name, params, value: value.strip_prefix(':').unwrap_or(value) })
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// A parameter, without the quotes around it. Refuses a repeated one.
    pub(super) fn param(&self, name: &str) -> Result<Option<&'a str>, Skip> {
        let (mut rest, mut found) = (self.params, None);
        while let Some(from) = rest.strip_prefix(';') {
            let (param, behind) = from.split_at(unquoted(from, b';').unwrap_or(from.len()));
            rest = behind;
            let (key, value) = param.split_once('=').ok_or(Skip::Malformed)?;
            if key.eq_ignore_ascii_case(name) {
                let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
                if found.replace(bare.unwrap_or(value)).is_some() {
                    return Err(Skip::Twice);
                }
            }
        }
        Ok(found)
    }
}

/// The first position of a sign outside of quotes.
fn unquoted(text: &str, sign: u8) -> Option<usize> {
    let mut is_quoted = false;
    text.bytes().position(|byte| {
        is_quoted ^= byte == b'"';
        byte == sign && !is_quoted
    })
}

/// A TEXT value as it is read: RFC 5545, 3.3.11.
pub(super) fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, false) => text.push(letter),
            _ => match letters.next() {
                Some('n' | 'N') => text.push('\n'),
                Some(sign @ ('\\' | ',' | ';')) => text.push(sign),
                Some(other) => text.extend(['\\', other]),
                None => text.push('\\'),
            },
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_are_undone_within_letters() {
        let folded = b"\xef\xbb\xbfSUMMARY:gr\xc3\r\n \xbcn\n\t and\r\n  long\r\nX:y\r\n";
        assert_eq!(unfolded(folded).unwrap(), "SUMMARY:gr\u{fc}n and long\r\nX:y\r\n");
        assert_eq!(unfolded(b"X:\xff"), Err(Skip::NotText));
        assert_eq!(lines("a\r\n\r\nb\nc\r").collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn a_line_is_name_parameters_and_value() {
        let line = Line::parse("ATTENDEE;CN=\"a:b;c\";TZID=X:mailto:x;y=z").unwrap();
        assert_eq!((line.name, line.value), ("ATTENDEE", "mailto:x;y=z"));
        assert_eq!(line.param("cn"), Ok(Some("a:b;c")));
        assert_eq!(line.param("TZID"), Ok(Some("X")));
        assert_eq!(line.param("VALUE"), Ok(None));
        let twice = Line::parse("DTSTART;TZID=A;tzid=B:20260101").unwrap();
        assert_eq!(twice.param("TZID"), Err(Skip::Twice));
        for bad in ["", "no colon", ":x", ";a=b:c", "A B:c", "A;x=\"b:c", "\u{fc}:x"] {
            assert!(Line::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn texts_are_unescaped() {
        assert_eq!(unescaped(r"a\nb\, c\; \\n \x \"), "a\nb, c; \\n \\x \\");
    }
}
