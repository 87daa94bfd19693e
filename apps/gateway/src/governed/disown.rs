//! A server's words that look as if they were the gateway's.

use std::borrow::Cow;

use rmcp::model::JsonObject;
use serde_json::Value;
use syscap::plain::plain;

use crate::governed::names;

/// The prefix of keys in `_meta` that are ours: no server's word stands under one.
const OWN_PREFIX: &str = "dev.syscap";

/// Takes what a server says in our name out of the `_meta` of what it answers, and of the blocks in
/// that; blocks of text have no lines that begin as ours do. Data (a resource, a structured result)
/// stays as it is.
pub(crate) fn disown(answer: &mut JsonObject) {
    if let Some(Value::Object(meta)) = answer.get_mut("_meta") {
        meta.retain(|key, _| !is_own(key));
    }
    if answer.get("type").and_then(Value::as_str) == Some("text")
        && let Some(Value::String(text)) = answer.get_mut("text")
        && let Cow::Owned(told) = not_ours(text)
    {
        *text = told;
    }
    for (key, part) in answer {
        // Data of the tool, whatever it looks like.
        if key != "structuredContent" && key != "_meta" {
            disown_within(part);
        }
    }
}

fn disown_within(value: &mut Value) {
    match value {
        Value::Object(map) => disown(map),
        Value::Array(items) => items.iter_mut().for_each(disown_within),
        _ => {}
    }
}

/// A server's words to models, with each line that begins as one of ours told to be the server's.
pub(crate) fn not_ours(text: &str) -> Cow<'_, str> {
    if !text.split(ENDS_LINE).any(begins_as_ours) {
        return Cow::Borrowed(text);
    }
    let mut all = String::with_capacity(text.len());
    for line in text.split_inclusive(ENDS_LINE) {
        if begins_as_ours(line) {
            all.push_str("[server] ");
        }
        all.push_str(line);
    }
    Cow::Owned(all)
}

/// The characters that show as the end of a line.
const ENDS_LINE: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// True if the first visible letters are those of our own lines.
fn begins_as_ours(line: &str) -> bool {
    let seen = line
        .chars()
        .filter(|c| !c.is_whitespace() && plain(c.encode_utf8(&mut [0; 4])) == c.to_string());
    let own = format!("[{}]", names::OWN);
    seen.take(own.len()).map(|c| c.to_ascii_lowercase()).eq(own.chars())
}

/// True if a key of `_meta` has our prefix, or one below it.
pub(crate) fn is_own(key: &str) -> bool {
    let prefix = key.split_once('/').map_or(key, |(prefix, _)| prefix);
    let rest = prefix.get(OWN_PREFIX.len()..).unwrap_or("?");
    let same = prefix.get(..OWN_PREFIX.len()).unwrap_or_default().eq_ignore_ascii_case(OWN_PREFIX);
    same && (rest.is_empty() || rest.starts_with('.'))
}
