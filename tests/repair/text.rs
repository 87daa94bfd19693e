//! Text that was meant as JSON, brought into its form.

use std::iter::Peekable;

use serde_json::Value;

/// Reads what a model wrote as one JSON object: what stands around it is dropped, and the slips
/// that models make in writing JSON are mended. A key that stands twice counts once.
pub(crate) fn read(text: &str) -> Option<Value> {
    let first = text.find('{')?;
    let mended = mend(text.get(first..)?);
    serde_json::from_str(&mended).ok()
}

/// One pass over characters; brackets that are left open are closed, what follows is dropped.
fn mend(text: &str) -> String {
    let (mut out, mut open) = (String::new(), Vec::new());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' | '\'' => string(c, &mut chars, &mut out),
            '{' | '[' => {
                open.push(if c == '{' { '}' } else { ']' });
                out.push(c);
            }
            '}' | ']' => {
                // A comma before the end separates nothing.
                let kept = out.trim_end().trim_end_matches(',').len();
                out.truncate(kept);
                out.extend(open.pop());
                if open.is_empty() {
                    return out;
                }
            }
            '/' if chars.peek() == Some(&'/') => while chars.next_if(|c| *c != '\n').is_some() {},
            '+' | '-' | '.' | '0'..='9' => number(c, &mut chars, &mut out),
            c if c.is_alphabetic() => word(c, &mut chars, &mut out),
            c => out.push(c),
        }
    }
    let kept = out.trim_end().trim_end_matches([',', ':']).len();
    out.truncate(kept);
    out.extend(open.into_iter().rev());
    out
}

type Chars<'a> = Peekable<std::str::Chars<'a>>;

/// A string in either quotes. What JSON can't have in one is escaped.
fn string(quote: char, chars: &mut Chars<'_>, out: &mut String) {
    let mut text = String::new();
    while let Some(c) = chars.next() {
        match c {
            c if c == quote => break,
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('r') => text.push('\r'),
                Some('u') => {
                    let digits: String = (0..4).filter_map(|_| chars.next()).collect();
                    let code = u32::from_str_radix(&digits, 16).ok();
                    text.push(code.and_then(char::from_u32).unwrap_or('\u{fffd}'));
                }
                Some(c @ ('"' | '\'' | '\\' | '/')) => text.push(c),
                // No escape of JSON: the backslash stands for itself.
                Some(c) => text.extend(['\\', c]),
                None => {}
            },
            c => text.push(c),
        }
    }
    out.push_str(&Value::String(text).to_string());
}

/// A number without what JSON's have not: a plus, leading zeros, -0, more than fits.
fn number(first: char, chars: &mut Chars<'_>, out: &mut String) {
    let mut text = String::from(first);
    let more = |c: &char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-' | '_');
    while let Some(c) = chars.next_if(more) {
        text.push(c);
    }
    let text = text.replace('_', "");
    let text = text.trim_start_matches('+');
    if let Ok(n) = text.parse::<i128>() {
        let n = n.clamp(i128::from(i64::MIN), i128::from(u64::MAX));
        out.push_str(&n.to_string());
        return;
    }
    let n: f64 = text.parse().unwrap_or(0.0);
    out.push_str(&Value::from(n.clamp(f64::MIN, f64::MAX)).to_string());
}

/// A word: JSON's three, Python's for them, or text that lacks its quotes.
fn word(first: char, chars: &mut Chars<'_>, out: &mut String) {
    let mut text = String::from(first);
    while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '.')) {
        text.push(c);
    }
    match text.as_str() {
        "true" | "True" => out.push_str("true"),
        "false" | "False" => out.push_str("false"),
        "null" | "None" | "undefined" | "NaN" => out.push_str("null"),
        other => out.push_str(&Value::from(other).to_string()),
    }
}

/// The most alike of some names, and whether it is alike enough to have been meant.
pub(crate) fn nearest<'a>(got: &str, names: &[&'a str]) -> Option<&'a str> {
    let plain = |text: &str| -> String {
        let text = text.to_lowercase();
        text.chars().map(|c| if c.is_alphanumeric() { c } else { '.' }).collect()
    };
    let got = plain(got);
    let distance = |name: &&str| {
        let name = plain(name);
        // `read` and `file.read.text` are slips for `fs.read`: all of a word counts much.
        let words = |a: &str, b: &str| a.split('.').any(|w| b.split('.').any(|v| v == w));
        let within = name.contains(&got) || got.contains(&name) || words(&got, &name);
        (edits(&got, &name), usize::from(!within))
    };
    let best = names.iter().min_by_key(|name| {
        let (edits, apart) = distance(name);
        (edits * (apart + 1), edits)
    })?;
    let (edits, apart) = distance(best);
    let is_near = apart == 0 || edits <= 2.max(got.len() / 3);
    (is_near && !got.is_empty()).then_some(*best)
}

/// How many characters to put in, take away or change.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = before + usize::from(x != *y);
            before = row[j + 1];
            row[j + 1] = change.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Standard base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |n: usize| u32::from(chunk.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for n in 0..4 {
            let digit = usize::try_from(bits >> (18 - 6 * n) & 63).unwrap();
            text.push(if n > chunk.len() { '=' } else { char::from(DIGITS[digit]) });
        }
    }
    text
}
