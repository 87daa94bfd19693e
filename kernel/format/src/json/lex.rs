//! Tokens: strings, numbers and words, from text that is known to be UTF-8.

use alloc::{string::String, vec::Vec};

use super::fault::{JsonError, JsonFault};

/// Of -2^63.
const NEGATIVE_MAX: u64 = 0x7fff_ffff_ffff_ffff;

/// A place in a JSON text.
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

/// A number as it was written.
pub(super) enum Number {
    Uint(u64),
    /// `n`, which stands for -1 - n as in CBOR.
    Negative(u64),
    Float(f64),
}

impl<'t> Lexer<'t> {
    /// Starts after nothing; a byte order mark is refused, as is text that is not UTF-8.
    pub(super) fn new(text: &'t [u8]) -> Result<Self, JsonError> {
        match core::str::from_utf8(text) {
            Ok(text) if text.starts_with('\u{feff}') => fault(JsonFault::Bom, 0),
            Ok(text) => Ok(Self { text, at: 0 }),
            Err(error) => fault(JsonFault::Utf8, error.valid_up_to()),
        }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) const fn text(&self) -> &'t str {
        self.text
    }

    /// The next byte that is not whitespace, unread.
    pub(super) fn token(&mut self) -> Option<u8> {
        self.at = skip_space(self.text, self.at);
        self.peek()
    }

    /// Reads the one byte that [`Lexer::token`] has shown.
    pub(super) fn bump(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    /// The fault at this place, where no token of the grammar stands.
    pub(super) fn unexpected<T>(&self) -> Result<T, JsonError> {
        match self.peek() {
            None => fault(JsonFault::End, self.at),
            Some(_) => fault(JsonFault::Unexpected, self.at),
        }
    }

    /// `true`, `false` or `null`.
    pub(super) fn word(&mut self, word: &str) -> Result<(), JsonError> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return self.unexpected();
        }
        self.at = self.at.saturating_add(word.len());
        Ok(())
    }

    /// A string from its opening quote on: handed to `take` without copying where it has no
    /// escapes.
    pub(super) fn string<T>(&mut self, take: impl FnOnce(&str) -> T) -> Result<T, JsonError> {
        self.bump();
        let plain = self.run();
        if self.peek() == Some(b'"') {
            self.bump();
            return Ok(take(plain));
        }
        let mut decoded = String::from(plain);
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.bump();
                    return Ok(take(&decoded));
                }
                Some(b'\\') => decoded.push(self.escape()?),
                Some(_) => return fault(JsonFault::Control, self.at),
                None => return fault(JsonFault::End, self.at),
            }
            decoded.push_str(self.run());
        }
    }

    /// A number from its sign or first digit on.
    pub(super) fn number(&mut self) -> Result<Number, JsonError> {
        let start = self.at;
        let negative = self.eat(b"-");
        let whole = self.digits()?;
        if whole.len() > 1 && whole.starts_with('0') {
            return fault(JsonFault::LeadingZero, start);
        }
        let mut float = self.eat(b".");
        if float {
            self.digits()?;
        }
        if self.eat(b"eE") {
            float = true;
            self.eat(b"+-");
            self.digits()?;
        }
        if float {
            let literal = self.text.get(start..self.at).unwrap_or_default();
            return match literal.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(Number::Float(value)),
                _ => fault(JsonFault::FloatRange, start),
            };
        }
        let Ok(magnitude) = whole.parse::<u64>() else {
            return fault(JsonFault::IntRange, start);
        };
        match (negative, magnitude.checked_sub(1)) {
            (false, _) => Ok(Number::Uint(magnitude)),
            // CBOR has no negative zero among its integers, so it would be lost.
            (true, None) => fault(JsonFault::NegativeZero, start),
            (true, Some(value)) if value <= NEGATIVE_MAX => Ok(Number::Negative(value)),
            (true, Some(_)) => fault(JsonFault::IntRange, start),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, any: &[u8]) -> bool {
        let found = self.peek().is_some_and(|byte| any.contains(&byte));
        if found {
            self.bump();
        }
        found
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<&'t str, JsonError> {
        let start = self.at;
        let digits = self.scan(|byte| byte.is_ascii_digit());
        match (digits.is_empty(), self.peek()) {
            (false, _) => Ok(digits),
            (true, None) => fault(JsonFault::End, start),
            (true, Some(_)) => fault(JsonFault::Number, start),
        }
    }

    /// The text up to the next quote, backslash or control character.
    fn run(&mut self) -> &'t str {
        self.scan(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f))
    }

    fn scan(&mut self, wanted: impl Fn(u8) -> bool) -> &'t str {
        let start = self.at;
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        let length = rest.iter().position(|byte| !wanted(*byte)).unwrap_or(rest.len());
        self.at = start.saturating_add(length);
        // A scan ends at an ASCII byte or at the end, so it never splits a character.
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// An escape, from its backslash on.
    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        self.bump();
        let letter = self.peek();
        self.bump();
        Ok(match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(start),
            Some(_) => return fault(JsonFault::Escape, start),
            None => return fault(JsonFault::End, self.text.len()),
        })
    }

    /// Four digits after `\u`, and the second half where they are the first half of a pair.
    fn unicode(&mut self, start: usize) -> Result<char, JsonError> {
        let first = self.hex(start)?;
        if let Some(character) = char::from_u32(u32::from(first)) {
            return Ok(character);
        }
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u")) {
            return fault(JsonFault::Surrogate, start);
        }
        self.at = self.at.saturating_add(2);
        let second = self.hex(start)?;
        match char::decode_utf16([first, second]).next() {
            Some(Ok(character)) => Ok(character),
            _ => fault(JsonFault::Surrogate, start),
        }
    }

    fn hex(&mut self, start: usize) -> Result<u16, JsonError> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(byte) = self.peek() else {
                return fault(JsonFault::End, self.at);
            };
            let digit = char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok());
            let Some(digit) = digit else {
                return fault(JsonFault::Escape, start);
            };
            unit = (unit << 4) | digit;
            self.bump();
        }
        Ok(unit)
    }
}

/// The first place from `at` on that holds no whitespace of JSON.
pub(super) fn skip_space(text: &str, at: usize) -> usize {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    at.saturating_add(rest.iter().take_while(|byte| space(byte)).count())
}

/// The positions at which each array and map opens and closes, in order of opening.
pub(super) fn brackets(text: &str) -> Vec<(usize, usize)> {
    let (mut pairs, mut open) = (Vec::new(), Vec::new());
    let mut bytes = text.bytes().enumerate();
    let mut quoted = false;
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => quoted = !quoted,
            b'\\' if quoted => drop(bytes.next()),
            b'[' | b'{' if !quoted => {
                open.push(pairs.len());
                pairs.push((at, at));
            }
            b']' | b'}' if !quoted => {
                if let Some((_, close)) = open.pop().and_then(|pair| pairs.get_mut(pair)) {
                    *close = at;
                }
            }
            _ => {}
        }
    }
    pairs
}

pub(super) const fn fault<T>(fault: JsonFault, at: usize) -> Result<T, JsonError> {
    Err(JsonError { fault, at })
}
