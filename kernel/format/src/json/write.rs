//! From canonical CBOR to JSON, for people and models to read.

use alloc::format;
use alloc::string::{String, ToString};

use super::{base64, reference::is_reference};
use crate::cbor::{DecodeError, DecodeFault, Decoder, Item, ItemKind, Profile};

/// How maps with one key that is an escape are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As escapes, where they have the form of one.
    Arguments,
    /// As data.
    Data,
    /// As they stand: within the value of `$lit`.
    Literal,
}

/// The item as compact JSON; `null` where the item breaks [`Profile::DATA`].
pub(super) fn print(item: Item<'_>, form: Form) -> String {
    let mut out = String::with_capacity(item.as_bytes().len());
    match value(&mut Decoder::new(item.as_bytes(), Profile::DATA), form, &mut out) {
        Ok(()) => out,
        Err(_) => String::from("null"),
    }
}

fn value(decoder: &mut Decoder<'_>, form: Form, out: &mut String) -> Result<(), DecodeError> {
    match decoder.peek()? {
        ItemKind::Uint | ItemKind::Negative => out.push_str(&decoder.int()?.to_string()),
        // Debug prints the fewest digits that read back as the same bits, always with a point
        // or an exponent.
        ItemKind::Float => out.push_str(&format!("{:?}", decoder.float()?)),
        ItemKind::Bool => out.push_str(if decoder.boolean()? { "true" } else { "false" }),
        ItemKind::Null => {
            decoder.null()?;
            out.push_str("null");
        }
        ItemKind::Text => quote(decoder.text()?, out),
        ItemKind::Bytes => {
            out.push_str("{\"$bytes\":\"");
            base64::encode(decoder.bytes()?, out);
            out.push_str("\"}");
        }
        ItemKind::Array => {
            out.push('[');
            let mut comma = "";
            decoder.each(|decoder| {
                out.push_str(comma);
                comma = ",";
                value(decoder, form, out)
            })?;
            out.push(']');
        }
        ItemKind::Map => return map(decoder, form, out),
    }
    Ok(())
}

fn map(decoder: &mut Decoder<'_>, form: Form, out: &mut String) -> Result<(), DecodeError> {
    let (form, wrap) = inside(decoder, form);
    if wrap {
        out.push_str("{\"$lit\":");
    }
    let mut texts = decoder.clone();
    match text_map(&mut texts, form, out) {
        Ok(()) => *decoder = texts,
        // Only the first key can have this fault, so nothing was written yet.
        Err(error) if error.fault == DecodeFault::KeyType => uint_map(decoder, form, out)?,
        Err(error) => return Err(error),
    }
    if wrap {
        out.push('}');
    }
    Ok(())
}

/// The form in which the map's values are printed, and whether the map is wrapped in a `$lit`.
fn inside(decoder: &Decoder<'_>, form: Form) -> (Form, bool) {
    let mut probe = decoder.clone();
    let only = probe.shape(1).and_then(|()| probe.text()).ok();
    match (form, only) {
        (Form::Arguments, Some("$lit")) => (Form::Literal, false),
        (Form::Arguments, Some("$ref")) if is_reference(probe) => (form, false),
        (Form::Arguments, Some("$ref" | "$bytes")) => (Form::Literal, true),
        (Form::Data, Some("$ref" | "$bytes" | "$lit")) => (Form::Literal, true),
        _ => (form, false),
    }
}

fn text_map(decoder: &mut Decoder<'_>, form: Form, out: &mut String) -> Result<(), DecodeError> {
    let mut before = "{";
    decoder.text_map(|key, decoder| {
        out.push_str(before);
        before = ",";
        quote(key, out);
        out.push(':');
        value(decoder, form, out)
    })?;
    out.push_str(if before == "{" { "{}" } else { "}" });
    Ok(())
}

fn uint_map(decoder: &mut Decoder<'_>, form: Form, out: &mut String) -> Result<(), DecodeError> {
    let count = u64::try_from(decoder.clone().item()?.count()).unwrap_or_default();
    decoder.shape(count)?;
    let mut before = '{';
    for _ in 0..count {
        out.push(before);
        before = ',';
        quote(&decoder.uint()?.to_string(), out);
        out.push(':');
        value(decoder, form, out)?;
    }
    out.push('}');
    Ok(())
}

/// A string. Characters that a terminal acts on, or that are invisible, are escaped.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if is_hidden(character) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// Control characters (C0, DEL, C1), line separators, bidirectional controls, invisible
/// operators, the byte order mark, tags and the like. Not the joiners U+200C and U+200D, which
/// several scripts need.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}
