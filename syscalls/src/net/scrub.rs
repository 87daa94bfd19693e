//! Taking secrets out of what comes back.
//!
//! A server that was given a secret may send it back, as it is or written otherwise. The answer is
//! read in several ways at once: as it stands, and with the escapes of percent signs, backslashes,
//! HTML and mail decoded. In each only letters and digits count, in any case; so whatever stands
//! between the parts of a secret hides none of it. The search is for the secret, and the same in
//! base64 (at each of its three offsets), base32, hexadecimal digits (also twice), a list of numbers
//! and backwards; and for the first and the last half of each, as errors show them. A server that
//! means to hide it can encrypt it: this is against echoes, not against spies.

use memchr::memmem;
use zeroize::Zeroizing;

use super::secret::{SECRET_BYTES_MIN, Secret};

/// Most digits of a letter's number.
const DIGITS_MAX: usize = 16;

/// The replacement of a secret.
pub(super) const SCRUBBED: &str = "[secret]";

/// A byte of one reading, and the text that it stands for.
#[derive(Clone, Copy)]
struct Unit {
    byte: u8,
    start: usize,
    end: usize,
}

/// The patterns for some secrets.
pub(super) struct Scrubber {
    needles: Vec<Zeroizing<Vec<u8>>>,
}

impl Scrubber {
    pub(super) fn of<'a>(secrets: impl Iterator<Item = &'a Secret>) -> Self {
        Self { needles: secrets.flat_map(|secret| needles(secret.value())).collect() }
    }

    /// The first so many bytes of a text, which go on, without any secret. One that begins there is
    /// taken out with all of it.
    pub(super) fn scrub(&self, text: &str, end: usize) -> String {
        let mut found = self.found(text.as_bytes());
        found.sort_unstable();
        let (mut clean, mut at) = (String::with_capacity(text.len()), 0);
        for (first, last) in found.into_iter().filter(|(first, _)| *first < end) {
            if first >= at {
                clean.push_str(text.get(at..first).unwrap_or_default());
                clean.push_str(SCRUBBED);
            }
            at = at.max(last);
        }
        let end = (at..=end).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(at);
        clean.push_str(text.get(at..end).unwrap_or_default());
        clean
    }

    /// True if one stands in the bytes.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        !self.found(bytes).is_empty()
    }

    /// How many bytes of a text that goes on can hold a part of a secret that ends behind them.
    pub(super) fn tail_bytes(&self) -> usize {
        let longest = self.needles.iter().map(|needle| needle.len()).max().unwrap_or(0);
        // In the longest way of writing one byte, with a little between them.
        longest.saturating_mul(7)
    }

    fn found(&self, bytes: &[u8]) -> Vec<(usize, usize)> {
        if self.needles.is_empty() {
            return Vec::new();
        }
        let readings =
            [plain(bytes), percent(bytes), backslash(bytes), html(bytes), printable(bytes)];
        let each = readings
            .iter()
            .flat_map(|reading| self.needles.iter().flat_map(|needle| places(reading, needle)));
        each.collect()
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
    let hex = hex_of(value.as_bytes());
    all.push(counted(&hex_of(&hex)));
    all.push(counted(&hex));
    all.push(counted(&Zeroizing::new(base32(value.as_bytes()))));
    let numbers: Zeroizing<String> =
        Zeroizing::new(value.bytes().map(|byte| byte.to_string()).collect());
    all.push(counted(numbers.as_bytes()));
    let backwards: Zeroizing<Vec<u8>> = Zeroizing::new(value.bytes().rev().collect());
    all.push(counted(&backwards));
    // A user and a password, as `Basic` has them.
    all.extend(decoded_base64(value).map(|bytes| counted(&bytes)));
    // A few letters are found everywhere.
    all.retain(|needle| needle.len() >= SECRET_BYTES_MIN);
    let halves: Vec<_> = all.iter().flat_map(|needle| halves(needle)).collect();
    all.extend(halves);
    all
}

/// The first and the last half, where they are not few letters.
fn halves(needle: &[u8]) -> impl Iterator<Item = Zeroizing<Vec<u8>>> {
    let half = needle.len().div_ceil(2).max(SECRET_BYTES_MIN);
    let last = needle.len().saturating_sub(half);
    [needle.get(..half), needle.get(last..).filter(|_| last > 0)]
        .into_iter()
        .flatten()
        .map(|half| Zeroizing::new(half.to_vec()))
}

/// In hexadecimal digits.
fn hex_of(bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |place: u8| DIGITS.get(usize::from(place)).copied();
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    Zeroizing::new(digits.filter_map(digit).collect())
}

/// In base32 (RFC 4648, 6), without what hangs on the end.
fn base32(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let (mut digits, mut held, mut bits) = (Vec::new(), 0_u16, 0_u32);
    for byte in bytes {
        // Fewer than five bits are left of those before.
        held = (held & 15) << 8 | u16::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            digits.extend(DIGITS.get(usize::from(held >> bits & 31)));
        }
    }
    digits
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

/// The positions of a needle in a reading, in bytes of the text. In linear time, whatever both are:
/// a server that was given a secret knows what to repeat.
fn places(reading: &[Unit], needle: &[u8]) -> Vec<(usize, usize)> {
    let bytes: Vec<u8> = reading.iter().map(|unit| unit.byte).collect();
    let bounds = |first: usize| {
        let last = first.saturating_add(needle.len()).saturating_sub(1);
        Some((reading.get(first)?.start, reading.get(last)?.end))
    };
    memmem::find_iter(&bytes, needle).filter_map(bounds).collect()
}

/// The bytes of a base64 text.
fn decoded_base64(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(u32::from(byte - b'A')),
        b'a'..=b'z' => Some(u32::from(byte - b'a') + 26),
        b'0'..=b'9' => Some(u32::from(byte - b'0') + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    };
    let (mut bytes, mut held, mut bits) = (Zeroizing::new(Vec::with_capacity(text.len())), 0, 0);
    for byte in text.trim_end_matches('=').bytes() {
        held = (held << 6 | digit(byte)?) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).unwrap_or(0));
        }
    }
    Some(bytes)
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

/// `%41` stands for `A`; so do `%2541`, which is decoded twice, and `%u0041`, as a script escapes it.
fn percent(bytes: &[u8]) -> Vec<Unit> {
    decoded(bytes, b'%', |rest| {
        let twice = rest.strip_prefix(b"25").and_then(hex).map(|byte| (byte, 4));
        let script = || rest.strip_prefix(b"u00").and_then(hex).map(|byte| (byte, 5));
        twice.or_else(script).or_else(|| hex(rest).map(|byte| (byte, 2)))
    })
}

/// `\u0041`, `\u{41}`, `\U00000041`, `\x41` and `\101` stand for `A`; other letters behind a
/// backslash are none.
fn backslash(bytes: &[u8]) -> Vec<Unit> {
    decoded(bytes, b'\\', |rest| {
        let long = rest.strip_prefix(b"u00").and_then(hex).map(|byte| (byte, 5));
        let longer = || rest.strip_prefix(b"U000000").and_then(hex).map(|byte| (byte, 9));
        let short = || rest.strip_prefix(b"x").and_then(hex).map(|byte| (byte, 3));
        let letter = || rest.first().filter(|byte| b"nrtbfv".contains(byte)).map(|_| (0, 1));
        let found = long.or_else(longer).or_else(short).or_else(|| braced(rest));
        found.or_else(|| octal(rest)).or_else(letter)
    })
}

/// `u{41}`, with up to six digits.
fn braced(rest: &[u8]) -> Option<(u8, usize)> {
    let digits = rest.strip_prefix(b"u{")?;
    let end = digits.iter().take(7).position(|byte| *byte == b'}')?;
    let digits = std::str::from_utf8(digits.get(..end)?).ok()?;
    Some((u8::from_str_radix(digits, 16).ok()?, end.saturating_add(3)))
}

/// Three digits to the base of eight.
fn octal(rest: &[u8]) -> Option<(u8, usize)> {
    let digits = std::str::from_utf8(rest.get(..3)?).ok()?;
    Some((u8::from_str_radix(digits, 8).ok()?, 3))
}

/// `&#65;` and `&#x41;` stand for `A`, also without the semicolon; what has a name is no letter.
fn html(bytes: &[u8]) -> Vec<Unit> {
    decoded(bytes, b'&', |rest| {
        let number = |digits: &[u8], radix| {
            let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
            let end = digits.iter().take(DIGITS_MAX).take_while(is_digit).count();
            let text = std::str::from_utf8(digits.get(..end)?).ok()?;
            let byte = u8::try_from(u32::from_str_radix(text, radix).ok()?).ok()?;
            let closed = usize::from(digits.get(end) == Some(&b';'));
            Some((byte, end.saturating_add(closed)))
        };
        if let Some(digits) = rest.strip_prefix(b"#") {
            return match digits.first() {
                Some(b'x' | b'X') => {
                    number(digits.get(1..)?, 16).map(|(byte, end)| (byte, end.saturating_add(2)))
                }
                _ => number(digits, 10).map(|(byte, end)| (byte, end.saturating_add(1))),
            };
        }
        let end = rest.iter().take(10).position(|byte| *byte == b';')?;
        let name = rest.get(..end)?;
        name.iter().all(u8::is_ascii_alphabetic).then(|| (0, end.saturating_add(1)))
    })
}

/// `=41` stands for `A`, as mail writes it.
fn printable(bytes: &[u8]) -> Vec<Unit> {
    decoded(bytes, b'=', |rest| hex(rest).map(|byte| (byte, 2)))
}

fn hex(bytes: &[u8]) -> Option<u8> {
    let digits = bytes.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// A reading in which some sequences stand for one byte. `escape` is given what follows the mark,
/// and says what it stands for and how many bytes of it that takes.
fn decoded(bytes: &[u8], mark: u8, escape: impl Fn(&[u8]) -> Option<(u8, usize)>) -> Vec<Unit> {
    let mut units = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let next = at.saturating_add(1);
        let escaped = if *byte == mark { bytes.get(next..).and_then(&escape) } else { None };
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
        let short: String = VALUE.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
        let mail: String = VALUE.bytes().map(|byte| format!("={byte:02X}")).collect();
        let named = VALUE.replace('/', "&sol;").replace('+', "&plus;").replace('=', "&equals;");
        let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
        let split: String = VALUE.chars().map(|c| format!("{c}\u{200b}, ")).collect();
        let lines: String = VALUE.chars().map(|c| format!("{c}\\n")).collect();
        let script: String = VALUE.bytes().map(|byte| format!("%u{byte:04X}")).collect();
        let braced: String = VALUE.bytes().map(|byte| format!("\\u{{{byte:x}}}")).collect();
        let wide: String = VALUE.bytes().map(|byte| format!("\\U{byte:08x}")).collect();
        let octal: String = VALUE.bytes().map(|byte| format!("\\{byte:03o}")).collect();
        let open: String = VALUE.bytes().map(|byte| format!("&#{byte} ")).collect();
        let long: String = VALUE.bytes().map(|byte| format!("&#{byte:012};")).collect();
        let numbers = format!("{:?}", VALUE.as_bytes());
        let hex_twice: String = hex.bytes().map(|byte| format!("{byte:02x}")).collect();
        // RFC 4648, 10, without the last digit.
        assert_eq!(super::base32(b"foobar"), b"MZXW6YTBO");
        let base32 = String::from_utf8(super::base32(VALUE.as_bytes())).unwrap();
        let backwards: String = VALUE.chars().rev().collect();
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
            short,
            mail,
            named,
            hex.clone(),
            hex.to_uppercase(),
            split,
            lines,
            script,
            braced,
            wide,
            octal,
            open,
            long,
            numbers,
            hex_twice,
            base32,
            backwards,
            encoded("", ""),
            encoded("", " and more"),
            encoded("a", "b"),
            encoded("user:", ""),
            encoded("ab", "xyz"),
            encoded("", "").replace('+', "-").replace('/', "_"),
        ] {
            let around = format!("before {text} behind");
            let clean = scrubber.scrub(&around, around.len());
            assert!(clean.starts_with("before ") && clean.contains(SCRUBBED), "{around}: {clean}");
            assert!(clean.ends_with(" behind"), "{clean}");
            assert!(!scrubber.is_in(clean.as_bytes()) && scrubber.is_in(around.as_bytes()));
        }
    }

    /// An error shows how a key begins or ends; less than half of it, or than eight letters, tells
    /// nobody much.
    #[test]
    fn half_of_a_secret_is_taken_out() {
        let value = "sk-Live-0123456789-abcdefghij";
        let scrubber = scrubber(value);
        let letters = value.replace('-', "").len();
        assert_eq!(letters, 26);
        for text in [&value[..16], &value[14..], &hex_half(value)] {
            let around = format!("bad key {text}....");
            let clean = scrubber.scrub(&around, around.len());
            assert!(clean.contains(SCRUBBED) && !clean.contains(text), "{clean}");
        }
        for text in [&value[..13], &value[18..]] {
            assert_eq!(scrubber.scrub(text, text.len()), text);
        }
    }

    fn hex_half(value: &str) -> String {
        value.bytes().take(15).map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn scrubber_leaves_other_text_alone() {
        let scrubber = scrubber(VALUE);
        for text in
            ["", "sk-Live", "Lorem ipsum", "%", "%4", "\\u00", "&#", "&#;", "&#999;", "\u{e9}"]
        {
            assert_eq!(scrubber.scrub(text, text.len()), text);
        }
        let both = format!("{VALUE}{VALUE} \u{e9}\u{1f600} {VALUE}");
        let clean = scrubber.scrub(&both, both.len());
        assert_eq!(clean, "[secret][secret] \u{e9}\u{1f600} [secret]");
        assert!(scrubber.is_in(VALUE.as_bytes()) && !scrubber.is_in(&[0xff, 0, 1]));
    }

    /// The kept part is short enough to hold no part of a secret at its cut.
    #[test]
    fn cut_text_holds_no_part_of_a_secret() {
        let scrubber = scrubber(VALUE);
        let text = format!("{} {VALUE}", "x".repeat(100));
        for cut in 101..text.len() {
            let part = text.get(..cut).unwrap();
            let clean = scrubber.scrub(part, part.len().saturating_sub(scrubber.tail_bytes()));
            assert!(!clean.contains("sk-"), "{clean}");
        }
        assert_eq!(scrubber.scrub(&text, 105), format!("{} [secret]", "x".repeat(100)));
    }

    #[test]
    fn a_user_and_a_password_are_found_without_their_base64() {
        let scrubber = scrubber("YW5uOm9wZW4tc2VzYW1lLTQy");
        let clean = scrubber.scrub("hello ann:open-sesame-42!", 25);
        assert_eq!(clean, "hello [secret]!");
    }
}
