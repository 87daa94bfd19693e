//! Splits a command line into words without asking a shell: nothing in it is expanded.

/// The fault of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadWords {
    /// A quote that is not closed, or a backslash at the end.
    #[error("a quote is not closed")]
    Open,
    /// No word at all.
    #[error("it is empty")]
    Empty,
}

/// The words of a line: quotes and backslashes as in a shell, and nothing else of it.
pub fn split(line: &str) -> Result<Vec<String>, BadWords> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' => loop {
                let word = word.get_or_insert_default();
                match rest.next().ok_or(BadWords::Open)? {
                    '\'' => break,
                    c => word.push(c),
                }
            },
            '"' => loop {
                let word = word.get_or_insert_default();
                match rest.next().ok_or(BadWords::Open)? {
                    '"' => break,
                    '\\' => {
                        let next = rest.next().ok_or(BadWords::Open)?;
                        if !matches!(next, '"' | '\\' | '$' | '`') {
                            word.push('\\');
                        }
                        word.push(next);
                    }
                    c => word.push(c),
                }
            },
            '\\' => word.get_or_insert_default().push(rest.next().ok_or(BadWords::Open)?),
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if words.is_empty() { Err(BadWords::Empty) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_quotes_and_backslashes() {
        let cases: [(&str, &[&str]); 6] = [
            ("npx -y  pkg", &["npx", "-y", "pkg"]),
            (r#"a 'b c' "d e" f\ g"#, &["a", "b c", "d e", "f g"]),
            (r#"'' "" x"#, &["", "", "x"]),
            (r#"a"b"'c'\d"#, &["abcd"]),
            (r#""\$HOME \x""#, &[r"$HOME \x"]),
            ("$HOME `id` ; rm *", &["$HOME", "`id`", ";", "rm", "*"]),
        ];
        for (line, words) in cases {
            assert_eq!(split(line).unwrap(), words, "{line}");
        }
        for line in ["'a", "\"a", "a\\", "\"\\"] {
            assert_eq!(split(line), Err(BadWords::Open), "{line}");
        }
        assert_eq!(split("  \t"), Err(BadWords::Empty));
    }
}
