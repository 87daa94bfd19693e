//! Standard base64 with padding (RFC 4648 section 4), one text for each byte string.

use alloc::{string::String, vec::Vec};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the base64 of `bytes`.
pub(super) fn encode(bytes: &[u8], out: &mut String) {
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        for (to, from) in group.iter_mut().skip(1).zip(chunk) {
            *to = *from;
        }
        let bits = u32::from_be_bytes(group);
        for (place, shift) in [18_u32, 12, 6, 0].into_iter().enumerate() {
            // One byte fills two digits, two fill three; the rest is padding.
            let digit = if place > chunk.len() { '=' } else { digit(bits >> shift) };
            out.push(digit);
        }
    }
}

/// The bytes, or `None` where the text is not the one that [`encode`] writes: whitespace, other
/// alphabets, missing padding and trailing bits that are not zero are refused.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let (groups, rest) = text.as_bytes().as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    let Some((last, whole)) = groups.split_last() else {
        return Some(Vec::new());
    };
    let mut out = Vec::with_capacity(text.len());
    for group in whole {
        out.extend_from_slice(&bytes(group)?);
    }
    match last {
        [a, b, b'=', b'='] => match bytes(&[*a, *b, b'A', b'A'])? {
            [x, 0, 0] => out.push(x),
            _ => return None,
        },
        [a, b, c, b'='] => match bytes(&[*a, *b, *c, b'A'])? {
            [x, y, 0] => out.extend_from_slice(&[x, y]),
            _ => return None,
        },
        group => out.extend_from_slice(&bytes(group)?),
    }
    Some(out)
}

fn digit(bits: u32) -> char {
    let place = usize::try_from(bits & 63).unwrap_or_default();
    char::from(ALPHABET.get(place).copied().unwrap_or(b'='))
}

fn bytes(group: &[u8; 4]) -> Option<[u8; 3]> {
    let mut bits = 0_u32;
    for digit in group {
        bits = (bits << 6) | u32::from(value(*digit)?);
    }
    let [_, x, y, z] = bits.to_be_bytes();
    Some([x, y, z])
}

const fn value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => digit.checked_sub(b'A'),
        b'a'..=b'z' => digit.checked_sub(b'a' - 26),
        b'0'..=b'9' => digit.checked_add(52 - b'0'),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}
