//! From JSON to canonical CBOR, in one pass over the text.
//!
//! Each array and map writes its children to the end of one buffer, then puts its head before
//! them; a map first sorts its entries by their encoded keys. So a byte is moved at most once a
//! level, and memory stays within a few times the text.

use alloc::vec::Vec;
use core::{cmp::Ordering, ops::Range};

use super::base64;
use super::fault::{Escapes, JsonError, JsonFault};
use super::lex::{Lexer, Number, brackets, fault, skip_space};
use super::reference::is_reference;
use crate::cbor::{Canonical, Decoder, Encoder, ItemKind, MapBuilder, Profile};

/// How many arrays and maps may enclose one another in the CBOR.
const DEPTH_MAX: u8 = Profile::DATA.depth_max();

/// The escapes as encoded keys: a text head, then the name.
const BYTES: &[u8] = b"\x66$bytes";
const LIT: &[u8] = b"\x64$lit";
const REF: &[u8] = b"\x64$ref";

/// Decides if escapes are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Arguments,
    /// Within the value of `$lit`, or in a text that is data as a whole.
    Literal,
}

/// An entry of a map: where its encoded key and value stand, and where in the text its key does.
struct Entry {
    key: usize,
    value: usize,
    end: usize,
    at: usize,
}

struct Reader<'t> {
    lexer: Lexer<'t>,
    out: Vec<u8>,
    /// The positions at which each array and map of the text opens and closes, once a `$lit` has
    /// asked for them.
    pairs: Option<Vec<(usize, usize)>>,
    /// True if a map that was read as data has the form of a `$ref` or a `$lit`.
    like_escapes: bool,
}

/// See [`super::to_cbor`].
pub(super) fn to_cbor(text: &[u8]) -> Result<Canonical, JsonError> {
    whole(text, Mode::Arguments, 0).map(|(value, _)| value)
}

/// See [`super::to_data`].
pub(super) fn to_data(text: &[u8]) -> Result<Canonical, JsonError> {
    whole(text, Mode::Literal, 0).map(|(value, _)| value)
}

/// See [`super::arguments`]. The envelope is a level of its own, and so is a `$lit`.
pub(super) fn arguments(text: &[u8], escapes: Escapes) -> Result<Canonical, JsonError> {
    if text.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        return Ok(MapBuilder::new().finish());
    }
    if escapes == Escapes::Read {
        return whole(text, Mode::Arguments, 1).map(|(value, _)| value);
    }
    let (data, like_escapes) = whole(text, Mode::Literal, 1)?;
    if !like_escapes || data.item().kind() != ItemKind::Map {
        return Ok(data);
    }
    let (data, _) = whole(text, Mode::Literal, 2)?;
    Ok(MapBuilder::new().item("$lit", data.item()).finish())
}

/// The whole text as one value that `depth` arrays and maps enclose; whether a map that was read
/// as data would be an escape elsewhere.
fn whole(text: &[u8], mode: Mode, depth: u8) -> Result<(Canonical, bool), JsonError> {
    let (lexer, out) = (Lexer::new(text)?, Vec::with_capacity(text.len()));
    let mut reader = Reader { lexer, out, pairs: None, like_escapes: false };
    reader.value(mode, depth)?;
    if reader.lexer.token().is_some() {
        return fault(JsonFault::Trailing, reader.lexer.at());
    }
    let mut encoder = Encoder::with_capacity(reader.out.len());
    encoder.raw(&reader.out);
    Ok((Canonical::from_encoder(encoder), reader.like_escapes))
}

impl Reader<'_> {
    /// One value that `depth` arrays and maps enclose.
    fn value(&mut self, mode: Mode, depth: u8) -> Result<(), JsonError> {
        match self.lexer.token() {
            Some(b'{') => return self.map(mode, depth),
            Some(b'[') => return self.array(mode, depth),
            Some(b'"') => return self.string(),
            Some(b'-' | b'0'..=b'9') => return self.number(),
            Some(b't') => self.word("true", 0xf5)?,
            Some(b'f') => self.word("false", 0xf4)?,
            Some(b'n') => self.word("null", 0xf6)?,
            _ => return self.lexer.unexpected(),
        }
        Ok(())
    }

    fn word(&mut self, word: &str, byte: u8) -> Result<(), JsonError> {
        self.lexer.word(word)?;
        self.out.push(byte);
        Ok(())
    }

    fn string(&mut self) -> Result<(), JsonError> {
        let out = &mut self.out;
        self.lexer.string(|text| {
            head(out, 3, length(text.len()));
            out.extend_from_slice(text.as_bytes());
        })
    }

    fn number(&mut self) -> Result<(), JsonError> {
        match self.lexer.number()? {
            Number::Uint(value) => head(&mut self.out, 0, value),
            Number::Negative(value) => head(&mut self.out, 1, value),
            Number::Float(value) => {
                let mut encoder = Encoder::with_capacity(9);
                encoder.float(value);
                self.out.extend_from_slice(&encoder.into_bytes());
            }
        }
        Ok(())
    }

    fn array(&mut self, mode: Mode, depth: u8) -> Result<(), JsonError> {
        let at = self.lexer.at();
        let Some(inner) = depth.checked_add(1).filter(|inner| *inner <= DEPTH_MAX) else {
            return fault(JsonFault::Depth, at);
        };
        let (start, mut count) = (self.out.len(), 0_usize);
        self.lexer.bump();
        if self.lexer.token() == Some(b']') {
            self.lexer.bump();
        } else {
            loop {
                self.value(mode, inner)?;
                count = count.saturating_add(1);
                if !self.more(b']')? {
                    break;
                }
            }
        }
        self.enclose(start, 4, count);
        Ok(())
    }

    /// A map. One level too many is let in where it may turn out to be a `$bytes`, which is no
    /// map in CBOR; nothing is let in below that.
    fn map(&mut self, mode: Mode, depth: u8) -> Result<(), JsonError> {
        let at = self.lexer.at();
        if depth > DEPTH_MAX {
            return fault(JsonFault::Depth, at);
        }
        let (start, mut entries) = (self.out.len(), Vec::new());
        self.lexer.bump();
        if self.lexer.token() == Some(b'}') {
            self.lexer.bump();
        } else {
            loop {
                let entry = self.entry(mode, depth.saturating_add(1), entries.is_empty())?;
                entries.push(entry);
                if !self.more(b'}')? {
                    break;
                }
            }
        }
        if let ([only], Mode::Arguments) = (entries.as_slice(), mode) {
            let key = self.out.get(only.key..only.value).unwrap_or_default();
            let value = Decoder::new(self.written(only.value), Profile::DATA);
            if key == BYTES {
                let Some(bytes) = value.clone().text().ok().and_then(base64::decode) else {
                    return fault(JsonFault::Bytes, at);
                };
                self.out.truncate(start);
                head(&mut self.out, 2, length(bytes.len()));
                self.out.extend_from_slice(&bytes);
                return Ok(());
            }
            if key == REF && !is_reference(value) {
                return fault(JsonFault::Reference, at);
            }
        }
        if let ([only], Mode::Literal) = (entries.as_slice(), mode) {
            let key = self.out.get(only.key..only.value).unwrap_or_default();
            self.like_escapes |= key == REF || key == LIT;
        }
        if depth == DEPTH_MAX {
            return fault(JsonFault::Depth, at);
        }
        self.sort(start, &mut entries)?;
        self.enclose(start, 5, entries.len());
        Ok(())
    }

    fn entry(&mut self, mode: Mode, depth: u8, first: bool) -> Result<Entry, JsonError> {
        if self.lexer.token() != Some(b'"') {
            return self.lexer.unexpected();
        }
        let (at, key) = (self.lexer.at(), self.out.len());
        self.string()?;
        let value = self.out.len();
        if self.lexer.token() != Some(b':') {
            return self.lexer.unexpected();
        }
        self.lexer.bump();
        let lone = first && mode == Mode::Arguments && self.written(key) == LIT && self.is_last();
        self.value(if lone { Mode::Literal } else { mode }, depth)?;
        Ok(Entry { key, value, end: self.out.len(), at })
    }

    /// True if another item follows; else it reads the closing bracket.
    fn more(&mut self, close: u8) -> Result<bool, JsonError> {
        let token = self.lexer.token();
        if token != Some(b',') && token != Some(close) {
            return self.lexer.unexpected();
        }
        self.lexer.bump();
        Ok(token == Some(b','))
    }

    /// True if the array or map that comes next is the last value of its map. For a scalar the
    /// answer doesn't matter: it reads alike in both modes. For text that is no JSON the answer may
    /// be wrong, and the parser refuses it in both modes.
    fn is_last(&mut self) -> bool {
        if !matches!(self.lexer.token(), Some(b'{' | b'[')) {
            return false;
        }
        let text = self.lexer.text();
        let pairs = self.pairs.get_or_insert_with(|| brackets(text));
        let found = pairs.binary_search_by_key(&self.lexer.at(), |(open, _)| *open);
        let close = found.ok().and_then(|found| pairs.get(found)).map(|(_, close)| *close);
        let next = close.map(|close| skip_space(text, close.saturating_add(1)));
        next.and_then(|next| text.as_bytes().get(next)) == Some(&b'}')
    }

    /// Puts the entries of a map in canonical order.
    fn sort(&mut self, start: usize, entries: &mut [Entry]) -> Result<(), JsonError> {
        let key = |entry: &Entry| self.out.get(entry.key..entry.value).unwrap_or_default();
        if entries.is_sorted_by(|a, b| key(a) < key(b)) {
            return Ok(());
        }
        // Of equal keys the one that stands first in the text comes first.
        entries.sort_by(|a, b| key(a).cmp(key(b)));
        let twice = entries.array_windows().filter(|[a, b]| key(a).cmp(key(b)) == Ordering::Equal);
        if let Some(at) = twice.map(|[_, b]| b.at).min() {
            return fault(JsonFault::DuplicateKey, at);
        }
        let mut sorted = Vec::with_capacity(self.out.len().saturating_sub(start));
        for entry in entries {
            let whole: Range<usize> = entry.key..entry.end;
            sorted.extend_from_slice(self.out.get(whole).unwrap_or_default());
        }
        self.out.truncate(start);
        self.out.extend_from_slice(&sorted);
        Ok(())
    }

    /// Puts a head before what was written since `start`.
    fn enclose(&mut self, start: usize, major: u8, count: usize) {
        let end = self.out.len();
        head(&mut self.out, major, length(count));
        let width = self.out.len().saturating_sub(end);
        if let Some(written) = self.out.get_mut(start..) {
            written.rotate_right(width);
        }
    }

    fn written(&self, start: usize) -> &[u8] {
        self.out.get(start..).unwrap_or_default()
    }
}

/// The shortest head: a major type and its argument.
fn head(out: &mut Vec<u8>, major: u8, value: u64) {
    let bytes = value.to_be_bytes();
    let (info, from) = match value {
        0..=23 => (bytes[7], 8),
        24..=0xff => (24, 7),
        0x100..=0xffff => (25, 6),
        0x1_0000..=0xffff_ffff => (26, 4),
        _ => (27, 0),
    };
    out.push((major << 5) | info);
    out.extend_from_slice(bytes.get(from..).unwrap_or_default());
}

fn length(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
