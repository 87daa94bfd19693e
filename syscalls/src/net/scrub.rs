//! Taking secrets out of what comes back.
//!
//! A server that was given a secret may send it back, as it is or written otherwise. What comes
//! back is read in several ways at once: as it stands, and with what percent signs, JSON and HTML
//! escape decoded. In each only letters and digits count, in any case; so whatever stands between
//! the parts of a secret hides none of it. What is looked for is the secret, and the same in base64
//! (at each of its three offsets) and in hexadecimal digits. A server that means to hide it can
//! encrypt it: this is against echoes, not against spies.

use memchr::memmem;
use zeroize::Zeroizing;

use super::secret::Secret;

/// What stands in its place.
pub(super) const SCRUBBED: &str = "[secret]";

/// A byte of one reading, and the text that it stands for.
#[derive(Clone, Copy)]
struct Unit {
    byte: u8,
    start: usize,
    end: usize,
}

/// What is looked for, of some secrets.
pub(super) struct Scrubber {
    needles: Vec<Zeroizing<Vec<u8>>>,
}

impl Scrubber {
    pub(super) fn of<'a>(secrets: impl Iterator<Item = &'a Secret>) -> Self {
        Self { needles: secrets.flat_map(|secret| needles(secret.value())).collect() }
    }

    /// The text without any secret; `None` where there is none in it.
    pub(super) fn scrub(&self, text: &str) -> Option<String> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        for reading in [plain(text.as_bytes()), percent(text), json(text), html(text)] {
            for needle in &self.needles {
                found.extend(places(&reading, needle));
            }
        }
        if found.is_empty() {
            return None;
        }
        found.sort_unstable();
        let (mut clean, mut at) = (String::with_capacity(text.len()), 0);
        for (start, end) in found {
            if start >= at {
                clean.push_str(text.get(at..start).unwrap_or_default());
                clean.push_str(SCRUBBED);
            }
            at = at.max(end);
        }
        clean.push_str(text.get(at..).unwrap_or_default());
        Some(clean)
    }
}

impl Scrubber {
    /// Whether one stands in what is no text.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        let reading = plain(bytes);
        self.needles.iter().any(|needle| !places(&reading, needle).is_empty())
    }
}

/// A secret in all the ways that are looked for, without what does not count.
fn needles(value: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let mut all = vec![counted(value.as_bytes())];
    for skipped in 0..3 {
        // What stands before it in the same groups of three is not known: those digits that hang
        // on it are left out, and those at the end that hang on what follows.
        let mut bytes = Zeroizing::new(vec![0; skipped]);
        bytes.extend(value.bytes());
        let whole = Zeroizing::new(base64(&bytes));
        let first = [0, 2, 3].get(skipped).copied().unwrap_or(0);
        let last = bytes.len().saturating_mul(8) / 6;
        all.push(counted(whole.get(first..last).unwrap_or_default()));
    }
    let hex: Zeroizing<String> =
        Zeroizing::new(value.bytes().map(|byte| format!("{byte:02x}")).collect());
    all.push(counted(hex.as_bytes()));
    // A few letters are found everywhere.
    all.retain(|needle| needle.len() >= super::secret::SECRET_BYTES_MIN);
    all
}

/// Letters and digits, in small letters.
fn counted(bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    let counts = bytes.iter().filter(|byte| byte.is_ascii_alphanumeric());
    Zeroizing::new(counts.map(u8::to_ascii_lowercase).collect())
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut digits = Vec::with_capacity(bytes.len().saturating_mul(2));
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len().min(3)));
        for place in 0..=group.len() {
            let digit = bits >> (18 - 6 * place) & 63;
            digits.extend(usize::try_from(digit).ok().and_then(|digit| DIGITS.get(digit)));
        }
    }
    digits
}

/// Where a needle stands in a reading, in bytes of the text. In linear time, whatever both are: a
/// server that was given a secret knows what to repeat.
fn places(reading: &[Unit], needle: &[u8]) -> Vec<(usize, usize)> {
    let bytes: Vec<u8> = reading.iter().map(|unit| unit.byte).collect();
    let bounds = |first: usize| {
        let last = first.saturating_add(needle.len()).saturating_sub(1);
        Some((reading.get(first)?.start, reading.get(last)?.end))
    };
    memmem::find_iter(&bytes, needle).filter_map(bounds).collect()
}

/// Units that count.
fn push(units: &mut Vec<Unit>, byte: u8, start: usize, end: usize) {
    if byte.is_ascii_alphanumeric() {
        units.push(Unit { byte: byte.to_ascii_lowercase(), start, end });
    }
}

fn plain(bytes: &[u8]) -> Vec<Unit> {
    let mut units = Vec::with_capacity(bytes.len());
    for (at, byte) in bytes.iter().enumerate() {
        push(&mut units, *byte, at, at.saturating_add(1));
    }
    units
}

/// `%41` stands for `A`; so does `%2541`, which is decoded twice.
fn percent(text: &str) -> Vec<Unit> {
    decoded(text, b'%', |rest| {
        let twice = rest.strip_prefix("25").and_then(|rest| hex(rest, 2)).map(|byte| (byte, 4));
        twice.or_else(|| hex(rest, 2).map(|byte| (byte, 2)))
    })
}

/// `\u0041` stands for `A`; what a backslash stands before is no letter.
fn json(text: &str) -> Vec<Unit> {
    decoded(text, b'\\', |rest| {
        let digits = rest.strip_prefix("u00").and_then(|rest| hex(rest, 2)).map(|byte| (byte, 5));
        digits.or_else(|| rest.starts_with(['n', 'r', 't', 'b', 'f']).then_some((0, 1)))
    })
}

/// `&#65;` and `&#x41;` stand for `A`.
fn html(text: &str) -> Vec<Unit> {
    decoded(text, b'&', |rest| {
        let (number, _) = rest.strip_prefix('#')?.split_once(';')?;
        let byte = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u8::from_str_radix(digits, 16),
            None => number.parse(),
        };
        Some((byte.ok()?, number.len().saturating_add(2)))
    })
}

fn hex(text: &str, digits: usize) -> Option<u8> {
    let digits = text.get(..digits).filter(|d| d.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

/// A reading in which some sequences stand for one byte. `escape` is given what follows the mark,
/// and says what it stands for and how many bytes of it that takes.
fn decoded(text: &str, mark: u8, escape: impl Fn(&str) -> Option<(u8, usize)>) -> Vec<Unit> {
    let mut units = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        let next = at.saturating_add(1);
        let escaped = if *byte == mark { text.get(next..).and_then(&escape) } else { None };
        let (byte, end) = match escaped {
            Some((byte, length)) => (byte, next.saturating_add(length)),
            None => (*byte, next),
        };
        push(&mut units, byte, at, end);
        at = end;
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::secret::Origin;

    const VALUE: &str = "sk-Live_4a/B+9zQ=7";

    fn scrubber(value: &str) -> Scrubber {
        let origins = vec![Origin::parse("https://a.test").unwrap()];
        let secret = Secret::new(Zeroizing::new(value.to_owned()), origins).unwrap();
        Scrubber::of([&secret].into_iter())
    }

    /// All that a server could echo by accident, and each part of it gone.
    #[test]
    fn a_secret_is_found_however_it_is_written() {
        let scrubber = scrubber(VALUE);
        let percent: String = VALUE.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let twice = percent.replace('%', "%25");
        let json: String = VALUE.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
        let html: String = VALUE.bytes().map(|byte| format!("&#{byte};")).collect();
        let html_hex: String = VALUE.bytes().map(|byte| format!("&#x{byte:x};")).collect();
        let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
        let split: String = VALUE.chars().map(|c| format!("{c}\u{200b}, ")).collect();
        let lines: String = VALUE.chars().map(|c| format!("{c}\\n")).collect();
        let encoded = |before: &str, after: &str| {
            String::from_utf8(base64(format!("{before}{VALUE}{after}").as_bytes())).unwrap()
        };
        for text in [
            VALUE.to_owned(),
            VALUE.to_uppercase(),
            percent,
            twice,
            json,
            html,
            html_hex,
            hex.clone(),
            hex.to_uppercase(),
            split,
            lines,
            encoded("", ""),
            encoded("", " and more"),
            encoded("a", "b"),
            encoded("user:", ""),
            encoded("ab", "xyz"),
            encoded("", "").replace('+', "-").replace('/', "_"),
        ] {
            let around = format!("before {text} behind");
            let clean = scrubber.scrub(&around).unwrap_or_else(|| panic!("not found: {around}"));
            assert!(clean.starts_with("before ") && clean.contains(SCRUBBED), "{clean}");
            assert!(clean.ends_with(" behind"), "{clean}");
            assert_eq!(scrubber.scrub(&clean), None);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        let scrubber = scrubber(VALUE);
        for text in
            ["", "sk-Live", "Lorem ipsum", "%", "%4", "\\u00", "&#", "&#;", "&#999;", "\u{e9}"]
        {
            assert_eq!(scrubber.scrub(text), None, "{text}");
        }
        let both = format!("{VALUE}{VALUE} \u{e9}\u{1f600} {VALUE}");
        let clean = scrubber.scrub(&both).unwrap();
        assert_eq!(clean, "[secret][secret] \u{e9}\u{1f600} [secret]");
        assert!(scrubber.is_in(VALUE.as_bytes()) && !scrubber.is_in(&[0xff, 0, 1]));
    }
}
