//! A JSON text and where its values stand in it.
//!
//! Writing keeps every byte that is not meant to change: values are found by their positions, and
//! nothing is printed anew. Numbers are checked for their form alone, since none is read.

use std::{collections::BTreeSet, ops::Range};

use syscap_format::Item;
use syscap_format::json::{self, JsonError, JsonFault};

/// Most arrays and maps around a value.
const DEPTH_MAX: usize = 64;

/// A value, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) span: Range<usize>,
    pub(crate) kind: Kind,
}

/// The kind of a value. Numbers and words are not told apart, except `null`.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Null,
    Other,
    Text(String),
    List(Vec<Value>),
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// The position of the key's quote.
    pub(crate) at: usize,
    pub(crate) value: Value,
}

impl Value {
    /// The value of a key; `None` also where this is no map.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The entries of a map; of all else none.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }
}

/// Reads the whole text as one value.
///
/// # Errors
/// The first fault: what RFC 8259 forbids, a byte order mark, a key that stands twice in one map
/// (however it is escaped), a lone surrogate, more than 64 levels.
pub(crate) fn read(text: &[u8]) -> Result<Value, JsonError> {
    let whole = match std::str::from_utf8(text) {
        Ok(text) if text.starts_with('\u{feff}') => return fault(JsonFault::Bom, 0),
        Ok(text) => text,
        Err(error) => return fault(JsonFault::Utf8, error.valid_up_to()),
    };
    let mut scan = Scan { text: whole, at: 0 };
    let value = scan.value(0)?;
    match scan.token() {
        None => Ok(value),
        Some(_) => fault(JsonFault::Trailing, scan.at),
    }
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn bump(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    fn skip(&mut self, wanted: impl Fn(u8) -> bool) -> usize {
        let start = self.at;
        while self.peek().is_some_and(&wanted) {
            self.bump();
        }
        self.at.saturating_sub(start)
    }

    /// The next byte that is not whitespace, unread.
    fn token(&mut self) -> Option<u8> {
        self.skip(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
        self.peek()
    }

    fn unexpected<T>(&self) -> Result<T, JsonError> {
        let end = self.peek().is_none();
        fault(if end { JsonFault::End } else { JsonFault::Unexpected }, self.at)
    }

    /// A value that so many arrays and maps enclose.
    fn value(&mut self, depth: usize) -> Result<Value, JsonError> {
        let token = self.token();
        let start = self.at;
        let kind = match token {
            Some(b'{' | b'[') if depth >= DEPTH_MAX => return fault(JsonFault::Depth, start),
            Some(b'{') => Kind::Map(self.map(depth)?),
            Some(b'[') => Kind::List(self.list(depth)?),
            Some(b'"') => Kind::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", Kind::Other)?,
            Some(b'f') => self.word("false", Kind::Other)?,
            Some(b'n') => self.word("null", Kind::Null)?,
            _ => return self.unexpected(),
        };
        Ok(Value { span: start..self.at, kind })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Value>, JsonError> {
        let mut items = Vec::new();
        self.bump();
        if self.token() == Some(b']') {
            self.bump();
            return Ok(items);
        }
        loop {
            items.push(self.value(depth.saturating_add(1))?);
            if !self.more(b']')? {
                return Ok(items);
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<Entry>, JsonError> {
        let (mut entries, mut keys) = (Vec::new(), BTreeSet::new());
        self.bump();
        if self.token() == Some(b'}') {
            self.bump();
            return Ok(entries);
        }
        loop {
            if self.token() != Some(b'"') {
                return self.unexpected();
            }
            let at = self.at;
            let key = self.string()?;
            if !keys.insert(key.clone()) {
                return fault(JsonFault::DuplicateKey, at);
            }
            if self.token() != Some(b':') {
                return self.unexpected();
            }
            self.bump();
            let value = self.value(depth.saturating_add(1))?;
            entries.push(Entry { key, at, value });
            if !self.more(b'}')? {
                return Ok(entries);
            }
        }
    }

    /// True if another item follows; else it reads the closing bracket.
    fn more(&mut self, close: u8) -> Result<bool, JsonError> {
        let token = self.token();
        if token != Some(b',') && token != Some(close) {
            return self.unexpected();
        }
        self.bump();
        Ok(token == Some(b','))
    }

    /// A string: its end is found here, and what it says by the lexer of all JSON.
    fn string(&mut self) -> Result<String, JsonError> {
        let start = self.at;
        self.bump();
        loop {
            self.skip(|byte| byte != b'"' && byte != b'\\');
            match self.peek() {
                Some(b'\\') => {
                    self.bump();
                    self.bump();
                }
                Some(_) => break,
                None => return fault(JsonFault::End, self.text.len()),
            }
        }
        self.bump();
        let literal = self.text.get(start..self.at).unwrap_or_default();
        let text = json::to_data(literal.as_bytes())
            .map_err(|error| JsonError { at: start.saturating_add(error.at), ..error })?;
        Ok(Item::as_text(text.item()).unwrap_or_default().to_owned())
    }

    fn word(&mut self, word: &str, kind: Kind) -> Result<Kind, JsonError> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return self.unexpected();
        }
        self.at = self.at.saturating_add(word.len());
        Ok(kind)
    }

    /// A number's form: what it is is its reader's affair, and none is read here.
    fn number(&mut self) -> Result<Kind, JsonError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.bump();
        }
        let zero = self.peek() == Some(b'0');
        if self.digits()? > 1 && zero {
            return fault(JsonFault::LeadingZero, start);
        }
        if self.peek() == Some(b'.') {
            self.bump();
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.bump();
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.bump();
            }
            self.digits()?;
        }
        Ok(Kind::Other)
    }

    fn digits(&mut self) -> Result<usize, JsonError> {
        match (self.skip(|byte| byte.is_ascii_digit()), self.peek()) {
            (0, None) => fault(JsonFault::End, self.at),
            (0, Some(_)) => fault(JsonFault::Number, self.at),
            (digits, _) => Ok(digits),
        }
    }
}

const fn fault<T>(fault: JsonFault, at: usize) -> Result<T, JsonError> {
    Err(JsonError { fault, at })
}
