//! Halves of surrogate pairs in JSON (RFC 8259 section 8.2): text that is UTF-8 can't hold them.

/// The text with U+FFFD for each escape that is half of a pair; `None` where there is none. Text
/// that is no JSON for another reason stays so.
pub(super) fn replaced(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut found = false;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let (before, escape) = rest.split_at_checked(at)?;
        out.extend_from_slice(before);
        let long = match (unit(escape), escape.get(ESCAPE..).and_then(unit)) {
            (Some(HIGH_FIRST..=HIGH_LAST), Some(LOW_FIRST..=LOW_LAST)) => 2 * ESCAPE,
            (Some(HIGH_FIRST..=LOW_LAST), _) => {
                found = true;
                out.extend_from_slice(br"\ufffd");
                rest = escape.get(ESCAPE..).unwrap_or_default();
                continue;
            }
            (Some(_), _) => ESCAPE,
            // Whatever it is, what follows the backslash begins no escape.
            (None, _) => 2.min(escape.len()),
        };
        let (escape, after) = escape.split_at_checked(long)?;
        out.extend_from_slice(escape);
        rest = after;
    }
    out.extend_from_slice(rest);
    found.then_some(out)
}

const ESCAPE: usize = r"\ud800".len();
const HIGH_FIRST: u16 = 0xd800;
const HIGH_LAST: u16 = 0xdbff;
const LOW_FIRST: u16 = 0xdc00;
const LOW_LAST: u16 = 0xdfff;

/// The code unit that a text begins with as an escape.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(br"\u")?.get(..ESCAPE - 2)?;
    // A sign is no digit here, though the parser of numbers takes one.
    let digits = str::from_utf8(digits).ok().filter(|it| !it.starts_with('+'))?;
    u16::from_str_radix(digits, 16).ok()
}
