//! A result in short, as text: what is ours, and what a tool wrote, told apart line by line.
//!
//! Each line that a tool or a caller wrote begins with [`FENCE`], and none of ours does. A text
//! can't begin such a line: only a line feed ends a line. Any other character that some program
//! takes for a line end, or that is invisible, stands as JSON writes it.

use std::fmt;

use syscap_format::{Canonical, Reason, Seq, TxOutcome, json};

use crate::inspect::artifact::short::{Excerpt, Short};
use crate::inspect::plain::push_plain;

/// How a line begins that a tool wrote.
const FENCE: &str = "| ";

/// Decides if the session may refer to the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Referred {
    /// It was delivered to a session that is open.
    Can,
    /// It was not, or that has ended.
    Cannot,
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_of_the_tool = matches!(self.reason, None | Some(Reason::ToolFailed));
        let is_result = is_of_the_tool && self.intent.is_some();
        let can = if is_result { Referred::Can } else { Referred::Cannot };
        f.write_str(entry(self, usize::MAX, can).unwrap_or_default().trim_end())
    }
}

/// `#12 fs.read ok: 40 bytes, digest 0123456789ab..`
pub(crate) fn title(short: &Short) -> String {
    let tool = short.tool.as_ref().map_or("?", |tool| tool.as_str());
    let mut line = format!("#{} {tool} {}", short.record, short.status.name());
    if short.tx != TxOutcome::NoOp {
        line.push_str(&format!(", {}", short.tx.name()));
    }
    let digest = short.digest.to_string();
    let digest = digest.get(..12).unwrap_or_default();
    line.push_str(&format!(": {} bytes, digest {digest}..\n", short.size_bytes));
    line
}

/// The text of one result in no more than `room` bytes; `None` where not even its frame has room.
pub(crate) fn entry(short: &Short, room: usize, referred: Referred) -> Option<String> {
    let mut text = title(short);
    let next = next(short);
    let mut frame = text.len().saturating_add(next.len());
    for excerpt in &short.excerpts {
        frame = frame.checked_add(tail_bytes_max(short.record, excerpt, referred))?;
    }
    let mut left = room.checked_sub(frame)?;
    let mut others = short.excerpts.len();
    for excerpt in &short.excerpts {
        let share = left.checked_div(others)?;
        let (fenced, shown) = fence(&excerpt.text, share);
        left = left.saturating_sub(fenced.len());
        others = others.saturating_sub(1);
        text.push_str(&fenced);
        text.push_str(&tail(short.record, excerpt, shown, referred));
    }
    text.push_str(&next);
    Some(text)
}

/// Fences a text, as far as there is room; and how many of its bytes that are.
fn fence(text: &str, room: usize) -> (String, usize) {
    let (mut fenced, mut shown) = (String::new(), 0_usize);
    let mut piece = String::new();
    // The line is open: it needs its end.
    let mut is_open = false;
    for c in text.chars() {
        piece.clear();
        if !is_open {
            piece.push_str(FENCE);
        }
        match c {
            '\n' | '\t' => piece.push(c),
            c => push_plain(&mut piece, c),
        }
        let end = if c == '\n' { 0 } else { 1 };
        let needed = fenced.len().saturating_add(piece.len()).saturating_add(end);
        if needed > room {
            break;
        }
        fenced.push_str(&piece);
        is_open = c != '\n';
        shown = shown.saturating_add(c.len_utf8());
    }
    if is_open {
        fenced.push('\n');
    }
    (fenced, shown)
}

/// The lines below an excerpt: how to refer to the result, and how to read on where it is cut.
fn tail(record: Seq, excerpt: &Excerpt, shown: usize, referred: Referred) -> String {
    let size = excerpt.size_bytes;
    let is_cut = u64::try_from(shown).is_ok_and(|shown| shown < size);
    let reference = reference(record, &excerpt.path);
    match (referred, is_cut) {
        (Referred::Cannot, false) => String::new(),
        (Referred::Cannot, true) => format!("cut: {shown} of {size} bytes\n"),
        (Referred::Can, false) => format!("refer: {reference}\n"),
        (Referred::Can, true) => format!(
            "cut: {shown} of {size} bytes; more: result.page \
             {{\"of\": {reference}, \"offset\": {shown}}}\n"
        ),
    }
}

/// Most bytes that a tail has.
fn tail_bytes_max(record: Seq, excerpt: &Excerpt, referred: Referred) -> usize {
    let size = usize::try_from(excerpt.size_bytes).unwrap_or(usize::MAX);
    // Cut before the last byte: all numbers are as long as they get.
    let cut = tail(record, excerpt, size.saturating_sub(1), referred);
    cut.len().max(tail(record, excerpt, size, referred).len())
}

/// `{"$ref": {"record": 12, "path": ["text"]}}`
fn reference(record: Seq, path: &[Box<str>]) -> String {
    let quoted = path.iter().map(|name| json::from_item(Canonical::text(name).item()));
    let path: Vec<String> = quoted.collect();
    format!("{{\"$ref\": {{\"record\": {record}, \"path\": [{}]}}}}", path.join(", "))
}

/// The caller's next step where there is no result.
fn next(short: &Short) -> String {
    short.retry.map_or_else(String::new, |retry| format!("retry: {}\n", retry.name()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXTS: &str = "(?s).{0,80}|[a\\n\\r\\t| \u{2028}\u{1f41d}]{0,80}";

    proptest! {
        /// Each line of any text is fenced, no character ends a line early, and the text keeps
        /// within its room. The excerpt is the text's beginning.
        #[test]
        fn a_fence_holds_any_text(text in TEXTS, room in 0_usize..400) {
            let (fenced, shown) = fence(&text, room);
            prop_assert!(fenced.len() <= room);
            let text = text.get(..shown).expect("a boundary");
            let lines: Vec<&str> = fenced.split_terminator('\n').collect();
            prop_assert_eq!(lines.len(), text.split_terminator('\n').count());
            for (line, of) in lines.iter().zip(text.split_terminator('\n')) {
                let line = line.strip_prefix(FENCE).expect("fenced");
                prop_assert!(!line.contains(|c: char| c.is_control() && c != '\t'));
                let plain: Vec<_> = of.split('\t').map(crate::inspect::plain::plain).collect();
                prop_assert_eq!(line, plain.join("\t"));
            }
        }
    }
}
