//! A text that is JSON, by its parts: each part is a piece of the text, so that what is not changed keeps
//! its bytes.

use syscap::format::json;

/// A part of a text that is JSON: a value, with white space around it or not.
#[derive(Clone, Copy)]
pub(super) struct Text<'t>(pub(super) &'t str);

impl<'t> Text<'t> {
    /// The members of an object, in their order; `None` where it is none.
    pub(super) fn members(self) -> Option<Vec<(String, Self)>> {
        let inner = self.0.trim().strip_prefix('{')?.strip_suffix('}')?;
        let mut members = Vec::new();
        for part in parts(inner) {
            let colon = outside(part).find(|(_, byte)| *byte == b':').map(|(at, _)| at)?;
            let (key, value) = part.split_at_checked(colon)?;
            let key = json::to_data(key.trim().as_bytes()).ok()?;
            members.push((key.item().as_text()?.to_owned(), Self(value.get(1..)?.trim())));
        }
        Some(members)
    }

    pub(super) fn member(self, name: &str) -> Option<Self> {
        self.members()?.into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The elements of a list; `None` where it is none.
    pub(super) fn elements(self) -> Option<Vec<Self>> {
        let inner = self.0.trim().strip_prefix('[')?.strip_suffix(']')?;
        Some(parts(inner).into_iter().map(|part| Self(part.trim())).collect())
    }
}

/// The parts between the commas of a text, without those in strings, lists and objects.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    for (at, _) in outside(text).filter(|(_, byte)| *byte == b',') {
        parts.extend(text.get(begin..at));
        begin = at.saturating_add(1);
    }
    parts.extend(text.get(begin..).filter(|part| !part.trim().is_empty()));
    parts
}

/// The bytes of a text that stand in no string, list or object of it, and where each stands.
fn outside(text: &str) -> impl Iterator<Item = (usize, u8)> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    text.bytes().enumerate().filter(move |(_, byte)| {
        if in_string {
            in_string = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
            return false;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth = depth.saturating_add(1),
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    })
}

/// The value of an object's member.
pub(super) fn value_of(member: &str) -> Option<&str> {
    let colon = outside(member).find(|(_, byte)| *byte == b':').map(|(at, _)| at)?;
    Some(member.get(colon.saturating_add(1)..)?.trim())
}

/// A list or an object with what becomes of each part of it, `None` for one that goes: with it goes what
/// stands between it and the part before. `None` where nothing is left.
pub(super) fn kept(text: &str, mut becomes: impl FnMut(&str) -> Option<String>) -> Option<String> {
    let inner = text.get(1..text.len().checked_sub(1)?)?;
    let all: Vec<&str> = parts(inner).into_iter().map(str::trim).collect();
    let at = |part: &str| part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    let (first, last) = (all.first()?, all.last()?);
    let mut made = text.get(..at(first))?.to_owned();
    let (mut before, mut is_first) = (at(first), true);
    for part in &all {
        if let Some(part_made) = becomes(part) {
            if !is_first {
                made.push_str(text.get(before..at(part))?);
            }
            made.push_str(&part_made);
            is_first = false;
        }
        before = at(part).saturating_add(part.len());
    }
    made.push_str(text.get(at(last).saturating_add(last.len())..)?);
    (!is_first).then_some(made)
}

/// `text` with another text for a part of itself.
pub(super) fn replaced(text: &str, part: &str, other: &str) -> String {
    let at = part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    let (begin, rest) = text.split_at_checked(at).unwrap_or((text, ""));
    format!("{begin}{other}{}", rest.get(part.len()..).unwrap_or_default())
}
