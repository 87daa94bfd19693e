//! The vault's rows: what is kept of a record beside the log, and can be erased.
//!
//! A row is CBOR `[version, key id or null, nonce or null, wrapped data key or null, bytes]`. In
//! these versions nothing is encrypted: the three in the middle are null, and the bytes are a map
//! {1: salts or null, 2: arguments or null, 3: result or null, 4: texts}. In version 1 the arguments
//! are a byte string; in version 2 they are pieces, some of which lie in the rows of results that
//! the call refers to. A call has one row under its first record, made durable before it runs, and
//! one under its outcome. Texts that people write lie under the record that commits to them.

use alloc::{boxed::Box, vec::Vec};

use crate::cbor::{Canonical, DecodeError, DecodeFault, Decoder, Encoder, Item, ItemKind, Profile};
use crate::envelope::Status;
use crate::facts::FactKey;
use crate::field::Field;
use crate::hash::{args_hash, changes_hash, fact_id, result_hash, text_hash};
use crate::id::{ArgsHash, FactId, ObjectId, ResultHash, Salt, Seq, TextHash, ToolId};
use crate::limits::{REFERENCES_MAX, TEXT_BYTES_MAX, TEXTS_MAX};

/// Version of a row that has all that it says itself.
const WHOLE: u64 = 1;
/// Version of a row whose arguments are in pieces.
const IN_PIECES: u64 = 2;
/// Most pieces: what is referred to, and what stands around it.
const PIECES_MAX: usize = 2 * REFERENCES_MAX + 1;
/// Keys of the payload.
const SALTS: u64 = 1;
const ARGUMENTS: u64 = 2;
const RESULT: u64 = 3;
const TEXTS: u64 = 4;
/// An empty list.
const NO_TEXTS: &[u8] = &[0x80];
/// Most bytes that a row has besides the arguments and the result.
const FRAME_BYTES: usize = 160;

/// A text that somebody wrote, or a name that stands for one: its record has the commitment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultText {
    /// The salt of the commitment.
    pub salt: Salt,
    /// The key under which the commitment stands in its record or body.
    pub field: u64,
    /// The text: at most [`TEXT_BYTES_MAX`] bytes.
    pub text: Box<str>,
}

impl VaultText {
    /// True if it has at most the length that a text may have.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.text.len() <= TEXT_BYTES_MAX
    }

    /// The commitment to it.
    pub fn hash(&self) -> TextHash {
        text_hash(&self.salt, self.field, &self.text)
    }
}

impl Field for VaultText {
    const SHAPE: &'static str = "array [bstr of 32, uint, text]";

    fn put(&self, encoder: &mut Encoder) {
        encoder.array(3);
        encoder.bytes(self.salt.as_bytes());
        encoder.uint(self.field);
        encoder.text(&self.text);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(DecodeFault::Value);
        if decoder.array()? != 3 {
            return Err(fault);
        }
        let salt = decoder.array_of().map(Salt::from_bytes)?;
        let (field, text) = (decoder.uint()?, decoder.text()?);
        let text = Self { salt, field, text: Box::from(text) };
        if text.is_short() { Ok(text) } else { Err(fault) }
    }
}

/// The three salts of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSalts {
    /// Of `call_hash`.
    pub call: Salt,
    /// The salt of `args_hash` and of the commitment to the arguments as sent.
    pub args: Salt,
    /// Of `result_hash`.
    pub result: Salt,
}

/// A piece of arguments. The bytes of all pieces, one after another, are the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgsPiece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The arguments are a part of a result: its outcome, and the path to the part, with text for
    /// keys and integers for places in lists.
    Part(Seq, Canonical),
}

impl Field for ArgsPiece {
    const SHAPE: &'static str = "bstr or array [uint, array of text or uint]";

    fn put(&self, encoder: &mut Encoder) {
        match self {
            Self::Bytes(bytes) => encoder.bytes(bytes),
            Self::Part(outcome, path) => {
                encoder.array(2);
                outcome.put(encoder);
                encoder.item(path.item());
            }
        }
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        if decoder.peek()? == ItemKind::Bytes {
            return decoder.bytes().map(|bytes| Self::Bytes(Vec::from(bytes)));
        }
        let fault = decoder.fault(DecodeFault::Value);
        if decoder.array()? != 2 {
            return Err(fault);
        }
        let (outcome, path) = (Seq::take(decoder)?, decoder.item()?);
        let is_step = |step: Item<'_>| step.as_text().is_some() || step.as_uint().is_some();
        match path.kind() == ItemKind::Array && path.elements().all(is_step) {
            true => Ok(Self::Part(outcome, path.into())),
            false => Err(fault),
        }
    }
}

/// A row of the vault, to be written: opaque to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultWrite {
    /// The record that it lies beside.
    pub seq: Seq,
    /// Its bytes.
    pub row: Vec<u8>,
}

impl VaultWrite {
    /// The row of a record.
    pub fn new(
        seq: Seq,
        salts: Option<&CallSalts>,
        args: Option<&[u8]>,
        result: Option<&[u8]>,
    ) -> Self {
        Self { seq, row: Self::row(salts, args, result) }
    }

    /// The row of a record that commits to texts.
    pub fn texts(seq: Seq, texts: Vec<VaultText>) -> Self {
        Self { seq, row: VaultEntry { texts, ..VaultEntry::default() }.to_row() }
    }

    /// The bytes of a row.
    pub fn row(salts: Option<&CallSalts>, args: Option<&[u8]>, result: Option<&[u8]>) -> Vec<u8> {
        row(salts, args.map_or(Kept::Nothing, Kept::Whole), result, &[])
    }

    /// The bytes of a row whose arguments are in pieces.
    pub fn row_of_pieces(salts: &CallSalts, pieces: &[ArgsPiece]) -> Vec<u8> {
        row(Some(salts), Kept::InPieces(pieces), None, &[])
    }
}

/// A commitment of a record, or a snapshot, to data in the vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commitment<'a> {
    /// The resolved arguments of a call of a tool with that manifest.
    Arguments(ArgsHash, &'a ToolId, &'a ObjectId),
    /// The changes of a state.
    Changes(ArgsHash),
    /// The value of a fact, one of the changes of a state.
    Fact(FactId, &'a FactKey),
    /// The delivered value.
    Result(ResultHash, Status),
}

/// The vault's data of a call: of its first record and its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VaultEntry {
    /// The salts, unless erased.
    pub salts: Option<CallSalts>,
    /// The resolved arguments, or the changes of a state, unless erased, or in pieces.
    pub args: Option<Vec<u8>>,
    /// The pieces of resolved arguments that do not lie here as a whole: at most 33.
    pub pieces: Vec<ArgsPiece>,
    /// The result, unless erased.
    pub result: Option<Vec<u8>>,
    /// The texts that the record commits to, unless erased: at most 128.
    pub texts: Vec<VaultText>,
}

impl VaultEntry {
    /// The contents of one row; `None` if its form is not one that this version reads.
    pub fn from_row(row: &[u8]) -> Option<Self> {
        parse(row).ok()
    }

    /// The committed data; `None` if it was erased, or the vault has other data. It is the one way
    /// from a row to a value that is believed.
    pub fn committed(&self, commitment: Commitment<'_>) -> Option<Canonical> {
        let salts = self.salts?;
        let bytes = match commitment {
            Commitment::Result(..) => self.result.as_ref()?,
            _ => self.args.as_ref()?,
        };
        let mut value = Item::check(bytes, Profile::DATA).ok()?;
        let is_it = match commitment {
            Commitment::Arguments(hash, tool, manifest) => {
                args_hash(&salts.args, tool, manifest, value) == hash
            }
            Commitment::Changes(hash) => changes_hash(&salts.args, value) == hash,
            Commitment::Fact(id, key) => {
                value = value.get(key.as_str())?;
                fact_id(&salts.args, key, value) == id
            }
            Commitment::Result(hash, status) => {
                result_hash(&salts.result, status.code(), value) == hash
            }
        };
        is_it.then(|| value.into())
    }

    /// The text that is committed to; `None` where it was erased, or the vault has another.
    pub fn text(&self, commitment: &TextHash) -> Option<&str> {
        let found = self.texts.iter().find(|text| text.hash() == *commitment);
        found.map(|text| &*text.text)
    }

    /// The row that holds this.
    pub fn to_row(&self) -> Vec<u8> {
        let args = match &self.args {
            Some(args) => Kept::Whole(args),
            None if self.pieces.is_empty() => Kept::Nothing,
            None => Kept::InPieces(&self.pieces),
        };
        row(self.salts.as_ref(), args, self.result.as_deref(), &self.texts)
    }
}

/// The arguments in a row.
enum Kept<'a> {
    Nothing,
    Whole(&'a [u8]),
    InPieces(&'a [ArgsPiece]),
}

fn row(
    salts: Option<&CallSalts>,
    args: Kept<'_>,
    result: Option<&[u8]>,
    texts: &[VaultText],
) -> Vec<u8> {
    let listed = list(texts);
    let listed = listed.as_deref().unwrap_or(NO_TEXTS);
    // Pieces are short: what is long lies elsewhere.
    let (args, pieces) = match args {
        Kept::Nothing => (None, None),
        Kept::Whole(args) => (Some(args), None),
        Kept::InPieces(pieces) => (None, list(pieces)),
    };
    let args_len = pieces.as_ref().map_or_else(|| args.map_or(1, item_len), Vec::len);
    let sizes = [args_len, result.map_or(1, item_len)];
    let salted = salts.map_or(1, |_| 1_usize.saturating_add(item_len(&[0; 32]).saturating_mul(3)));
    // The map's head, four keys, and the list of texts.
    let around = salted.saturating_add(5).saturating_add(listed.len());
    let size = sizes.iter().fold(around, |sum, len| sum.saturating_add(*len));
    let mut encoder = Encoder::with_capacity(size.saturating_add(FRAME_BYTES));
    encoder.array(5);
    encoder.uint(if pieces.is_some() { IN_PIECES } else { WHOLE });
    (0..3).for_each(|_| encoder.null());
    encoder.byte_head(size);
    encoder.map(4);
    encoder.uint(SALTS);
    match salts {
        Some(CallSalts { call, args, result }) => {
            encoder.array(3);
            [call, args, result].iter().for_each(|salt| encoder.bytes(salt.as_bytes()));
        }
        None => encoder.null(),
    }
    encoder.uint(ARGUMENTS);
    match (&pieces, args) {
        (Some(pieces), _) => encoder.raw(pieces),
        (None, Some(args)) => encoder.bytes(args),
        (None, None) => encoder.null(),
    }
    encoder.uint(RESULT);
    match result {
        Some(result) => encoder.bytes(result),
        None => encoder.null(),
    }
    encoder.uint(TEXTS);
    encoder.raw(listed);
    encoder.into_bytes()
}

/// The list of texts, or pieces, where there are any: most rows have none.
fn list(all: &[impl Field]) -> Option<Vec<u8>> {
    if all.is_empty() {
        return None;
    }
    let mut listed = Encoder::new();
    listed.array(all.len());
    all.iter().for_each(|one| one.put(&mut listed));
    Some(listed.into_bytes())
}

/// Reads a list of at most `most` items.
fn listed<T: Field>(decoder: &mut Decoder<'_>, most: usize) -> Result<Vec<T>, DecodeError> {
    let fault = decoder.fault(DecodeFault::Value);
    let count = decoder.array()?;
    if count > crate::field::count(most) {
        return Err(fault);
    }
    (0..count).map(|_| T::take(decoder)).collect()
}

/// How long a byte string is with its head.
const fn item_len(bytes: &[u8]) -> usize {
    let head: usize = match bytes.len() {
        0..=23 => 1,
        24..=0xff => 2,
        0x100..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 9,
    };
    head.saturating_add(bytes.len())
}

fn parse(row: &[u8]) -> Result<VaultEntry, DecodeError> {
    let mut decoder = Decoder::new(row, Profile::CONTROL);
    let fault = decoder.fault(DecodeFault::Value);
    let (5, version @ (WHOLE | IN_PIECES)) = (decoder.array()?, decoder.uint()?) else {
        return Err(fault);
    };
    for _ in 0..3 {
        decoder.null()?;
    }
    let mut payload = Decoder::new(decoder.bytes()?, Profile::CONTROL);
    decoder.finish()?;
    payload.shape(4)?;
    payload.key(SALTS)?;
    let salts = optional(&mut payload, |payload| {
        if payload.array()? != 3 {
            return Err(fault);
        }
        let mut salt = || payload.array_of().map(Salt::from_bytes);
        Ok(CallSalts { call: salt()?, args: salt()?, result: salt()? })
    })?;
    payload.key(ARGUMENTS)?;
    let (mut args, mut pieces) = (None, Vec::new());
    match version {
        WHOLE => args = optional(&mut payload, |payload| payload.bytes().map(Vec::from))?,
        _ => pieces = listed(&mut payload, PIECES_MAX)?,
    }
    // Without pieces it would be another form of the same.
    if version == IN_PIECES && pieces.is_empty() {
        return Err(fault);
    }
    payload.key(RESULT)?;
    let result = optional(&mut payload, |payload| payload.bytes().map(Vec::from))?;
    payload.key(TEXTS)?;
    let texts = listed(&mut payload, TEXTS_MAX)?;
    payload.finish()?;
    Ok(VaultEntry { salts, args, pieces, result, texts })
}

fn optional<'a, T>(
    decoder: &mut Decoder<'a>,
    take: impl FnOnce(&mut Decoder<'a>) -> Result<T, DecodeError>,
) -> Result<Option<T>, DecodeError> {
    if decoder.peek()? == ItemKind::Null {
        return decoder.null().map(|()| None);
    }
    take(decoder).map(Some)
}
