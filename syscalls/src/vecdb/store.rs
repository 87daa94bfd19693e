//! A collection on disk: a file that is only added to, and read once.
//!
//! It begins with [`MAGIC`] and the number of dimensions. Behind that stand frames: a length, the
//! first eight bytes of the SHA-256 of what follows, and a canonical list of the label, the kind
//! and what was put or removed. The first frame that is cut or does not have its digest ends the
//! file: a crash broke off the call that wrote it, and the next one takes its place.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use syscap_format::{Canonical, Decoder, Encoder, Item, Label, Profile, field::Field as _};

use super::collection::{Collection, Record};
use crate::beneath::{
    Append, Behind, Charge, Effect, Existing, FolderMode, FsError, Location, OpenFile, Opener,
    Parents, Refused, TempName, Write, WriteFailure,
};
use crate::fs::sha256;
use crate::turns::WAIT_MAX;

const MAGIC: &[u8; 12] = b"syscapvec\0\0\x01";
/// The head of the file: the magic and the dimensions.
pub(super) const HEAD_BYTES: usize = 16;
/// The head of a frame: its length and the beginning of its digest.
pub(super) const FRAME_BYTES: usize = 12;
/// Largest frame: what an envelope of a mebibyte can bring, where each number has one byte there
/// and four here, several times over.
const FRAME_BYTES_MAX: usize = 16 << 20;
/// Largest file.
pub(super) const FILE_BYTES_MAX: u64 = 2 << 30;
/// How much is read at once.
const READ_BYTES: usize = 4 << 20;
/// Most bytes of all collections that are held in memory; beyond that others are read anew.
const HELD_BYTES_MAX: u64 = 1 << 30;

/// The size from which on a file is written anew, where more than half of it is gone.
const ANEW_BYTES_MIN: u64 = 1 << 20;
/// How many vectors a frame has then: few enough for [`FRAME_BYTES_MAX`].
const ANEW_ITEMS: usize = 128;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Put = 0,
    Remove = 1,
}

/// A collection in memory, and how far its file was read.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) collection: Collection,
    /// The end of the last whole frame.
    end_bytes: u64,
    /// The bytes behind it that form no frame: of an append that a crash interrupted, or damaged.
    pub(super) skipped_bytes: u64,
    state: Known,
}

/// The state of the knowledge about a collection's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    /// Unknown: the first caller reads it.
    #[default]
    Nothing,
    /// The held data is the file's.
    All,
    /// It may be another than what is held. The next caller reads the file anew.
    Lost,
}

/// A place for a collection.
#[derive(Debug, Default)]
struct Slot {
    held: RwLock<Held>,
    /// About how many bytes it takes: looked at without waiting for whoever is at it.
    bytes: AtomicU64,
}

/// All collections over a base directory, and those that were read.
#[derive(Debug)]
pub(super) struct Store {
    base: Arc<dyn Opener>,
    slots: Mutex<HashMap<Box<str>, Arc<Slot>>>,
}

impl Store {
    pub(super) fn over(base: Arc<dyn Opener>) -> Self {
        Self { base, slots: Mutex::default() }
    }

    pub(super) fn base(&self) -> &dyn Opener {
        &*self.base
    }

    /// Looks at a collection, which is read where it was not; it is empty where it has no file.
    pub(super) fn look<T>(&self, name: &str, look: impl FnOnce(&Held) -> T) -> Result<T, FsError> {
        loop {
            let slot = self.slot(name);
            {
                let held = slot.held.read().unwrap_or_else(PoisonError::into_inner);
                if held.state == Known::All {
                    return Ok(look(&held));
                }
            }
            self.read_into(&slot, name)?;
        }
    }

    /// Looks at a collection and, where the look lets it, adds a frame to it: to its file, and
    /// after that to what is held. No other caller changes it meanwhile.
    pub(super) fn change<T, E>(
        &self,
        name: &str,
        frame: &Frame,
        look: impl FnOnce(&Held) -> Result<T, E>,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<Result<T, E>, WriteFailure> {
        let not_done = |error| WriteFailure { error, effect: Effect::NotDone, folders: 0 };
        loop {
            let slot = self.slot(name);
            self.read_into(&slot, name).map_err(not_done)?;
            let mut held = slot.held.write().unwrap_or_else(PoisonError::into_inner);
            if held.state != Known::All {
                continue;
            }
            let looked = match look(&held) {
                Ok(looked) => looked,
                Err(refused) => return Ok(Err(refused)),
            };
            // Whatever comes between, what is held may not be what is there.
            held.state = Known::Lost;
            let added = self.add(name, &mut held, frame, meter);
            match added {
                Ok(()) if self.write_anew(name, &mut held) => held.state = Known::All,
                _ => self.forget(name, &slot),
            }
            slot.bytes.store(held.end_bytes, Relaxed);
            return added.map(|()| Ok(looked));
        }
    }

    fn add(
        &self,
        name: &str,
        held: &mut Held,
        frame: &Frame,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<(), WriteFailure> {
        let failure = |error, effect| WriteFailure { error, effect, folders: 0 };
        let at = location(name).map_err(|error| failure(error, Effect::NotDone))?;
        let content = frame.bytes(held.end_bytes == 0);
        let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
        let end_bytes = held.end_bytes.saturating_add(size);
        // One that could not be read again is not written.
        if end_bytes > FILE_BYTES_MAX || frame.payload.len() > FRAME_BYTES_MAX {
            return Err(failure(FsError::TooLarge, Effect::NotDone));
        }
        let behind = Behind::Torn(FRAME_BYTES.saturating_add(FRAME_BYTES_MAX), is_torn);
        let job = Append { from_bytes: held.end_bytes, content: &content, behind };
        let turn = self.base.turn(
            &at,
            Parents::Create(FolderMode::Private),
            job.content,
            WAIT_MAX,
            meter,
        )?;
        self.base.append(&turn, &job, meter)?;
        drop(turn);
        held.end_bytes = end_bytes;
        held.skipped_bytes = 0;
        // By the same reading as after a restart: nothing else gets into memory.
        apply(&mut held.collection, frame.dimensions, &frame.payload)
            .ok_or_else(|| failure(FsError::NotRegular, Effect::Unknown))
    }

    /// Writes a file anew of which more than half is gone, in one step of the file system. No call
    /// pays for it: a call pays for its own data. Returns true if the held data is the file's.
    fn write_anew(&self, name: &str, held: &mut Held) -> bool {
        let twice = held.collection.live_bytes().saturating_mul(2);
        if held.end_bytes < ANEW_BYTES_MIN.max(twice) {
            return true;
        }
        // Two collections may lie in one folder.
        let temp =
            TempName::new(&format!("vectors-{:016x}", u64::from_be_bytes(check(name.as_bytes()))));
        let (Ok(at), Ok(temp)) = (location(name), temp) else { return true };
        // One that a crash left: nobody else writes it.
        if self.base.discard(&at, &temp).is_err() {
            return true;
        }
        // Another process may have added to it since: that is read first.
        if !self.base.metadata(&at).is_ok_and(|found| found.size_bytes == held.end_bytes) {
            return false;
        }
        let content = whole(&held.collection);
        let job = Write {
            content: &content,
            existing: Existing::Replace,
            expected: None,
            made_from: None,
            temp: &temp,
            label: Label::PUBLIC,
        };
        let turn = self.base.turn(&at, Parents::Require, &[], WAIT_MAX, &mut |_| Ok(()));
        match turn.and_then(|turn| self.base.write(turn, &job, &mut |_| Ok(()))) {
            Ok(written) => {
                held.end_bytes = written.size_bytes;
                true
            }
            // The file is as it was: it is tried again with the next call.
            Err(failure) => failure.effect == Effect::NotDone,
        }
    }

    /// The place of a collection.
    fn slot(&self, name: &str) -> Arc<Slot> {
        let mut all = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = all.get(name) {
            return Arc::clone(found);
        }
        let sizes = all.values().map(|slot| slot.bytes.load(Relaxed));
        if sizes.fold(0, u64::saturating_add) > HELD_BYTES_MAX {
            // Those that somebody is at stay: of one collection there are never two.
            all.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(all.entry(name.into()).or_default())
    }

    /// Takes the place away, so that the next call reads the file.
    fn forget(&self, name: &str, slot: &Arc<Slot>) {
        let mut all = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(name).is_some_and(|found| Arc::ptr_eq(found, slot)) {
            all.remove(name);
        }
    }

    /// Reads what is not known yet.
    fn read_into(&self, slot: &Arc<Slot>, name: &str) -> Result<(), FsError> {
        let mut held = slot.held.write().unwrap_or_else(PoisonError::into_inner);
        match held.state {
            Known::All => {}
            // One that broke off within a change left it so.
            Known::Lost => self.forget(name, slot),
            Known::Nothing => {
                *held = match self.base.open_file(&location(name)?, FILE_BYTES_MAX) {
                    Ok(file) => read(&file)?,
                    Err(FsError::NotFound) => Held::default(),
                    Err(error) => return Err(error),
                };
                held.state = Known::All;
                slot.bytes.store(held.end_bytes, Relaxed);
            }
        }
        Ok(())
    }
}

/// A whole collection as a file: what has one label stands together.
fn whole(collection: &Collection) -> Vec<u8> {
    let dimensions = collection.dimensions();
    let mut content = head(dimensions);
    let mut put: Vec<(Box<str>, Canonical, Vec<f32>)> = Vec::new();
    let mut of = Label::PUBLIC;
    let mut write = |label, put: &mut Vec<_>| {
        if !put.is_empty() {
            content.extend_from_slice(&Frame::put(label, dimensions, put).bytes(false));
            put.clear();
        }
    };
    for (record, unit) in collection.all() {
        if record.label != of || put.len() >= ANEW_ITEMS {
            write(of, &mut put);
            of = record.label;
        }
        put.push((record.id.clone(), record.metadata.clone(), unit.to_vec()));
    }
    write(of, &mut put);
    content
}

/// How a file begins.
fn head(dimensions: usize) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&u32::try_from(dimensions).unwrap_or(0).to_le_bytes());
    bytes
}

/// A call's change of a collection.
#[derive(Debug)]
pub(super) struct Frame {
    dimensions: usize,
    payload: Vec<u8>,
}

impl Frame {
    /// A put of vectors, with the label of the session.
    pub(super) fn put(
        label: Label,
        dimensions: usize,
        items: &[(Box<str>, Canonical, Vec<f32>)],
    ) -> Self {
        let mut encoder = begin(label, Step::Put, items.len());
        for (id, metadata, unit) in items {
            encoder.array(3);
            encoder.text(id);
            encoder.item(metadata.item());
            let bytes: Vec<u8> = unit.iter().flat_map(|number| number.to_le_bytes()).collect();
            encoder.bytes(&bytes);
        }
        Self { dimensions, payload: encoder.into_bytes() }
    }

    pub(super) fn remove(label: Label, dimensions: usize, ids: &[Box<str>]) -> Self {
        let mut encoder = begin(label, Step::Remove, ids.len());
        ids.iter().for_each(|id| encoder.text(id));
        Self { dimensions, payload: encoder.into_bytes() }
    }

    /// How long it is on disk at most, whatever its label and wherever it stands.
    pub(super) fn bytes_max(&self) -> u64 {
        // A label is a number of at most nine bytes.
        let all = self.payload.len().saturating_add(HEAD_BYTES + FRAME_BYTES + 9);
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    fn bytes(&self, is_first: bool) -> Vec<u8> {
        let mut bytes = if is_first { head(self.dimensions) } else { Vec::new() };
        bytes.extend_from_slice(&u32::try_from(self.payload.len()).unwrap_or(0).to_le_bytes());
        bytes.extend_from_slice(&check(&self.payload));
        bytes.extend_from_slice(&self.payload);
        bytes
    }
}

fn begin(label: Label, step: Step, count: usize) -> Encoder {
    let mut encoder = Encoder::new();
    encoder.array(3);
    label.put(&mut encoder);
    encoder.uint(match step {
        Step::Put => 0,
        Step::Remove => 1,
    });
    encoder.array(count);
    encoder
}

fn check(payload: &[u8]) -> [u8; 8] {
    sha256(payload).first_chunk().copied().unwrap_or_default()
}

/// The location of a collection's file: in a folder of no agent, since no agent begins with a dot.
fn location(name: &str) -> Result<Location, FsError> {
    let mut names: Vec<String> = vec!["agents".to_owned(), ".vectors".to_owned()];
    names.extend(name.split('/').map(str::to_owned));
    if let Some(last) = names.last_mut() {
        last.push_str(".vec");
    }
    Location::new(&names)
}

/// Reads all whole frames of a file.
fn read(file: &OpenFile) -> Result<Held, FsError> {
    let mut reader = Reader { file, bytes: Vec::new(), at: 0, read_bytes: 0 };
    let mut held = Held::default();
    let Some(head) = reader.take(HEAD_BYTES)? else { return Ok(held) };
    let dimensions = match head.split_first_chunk::<12>() {
        Some((MAGIC, rest)) => u32_of(rest).and_then(|n| usize::try_from(n).ok()),
        _ => None,
    };
    // It is no collection, and is not made one.
    let dimensions = dimensions.ok_or(FsError::NotRegular)?;
    let mut end = u64::try_from(HEAD_BYTES).unwrap_or(u64::MAX);
    while let Some(head) = reader.take(FRAME_BYTES)? {
        let (length, digest) = head.split_at_checked(4).unwrap_or_default();
        let length = u32_of(length).and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
        let digest = digest.to_vec();
        if length > FRAME_BYTES_MAX {
            break;
        }
        let Some(payload) = reader.take(length)? else { break };
        if digest != check(payload) || apply(&mut held.collection, dimensions, payload).is_none() {
            break;
        }
        let frame = length.saturating_add(FRAME_BYTES);
        end = end.saturating_add(u64::try_from(frame).unwrap_or(u64::MAX));
        held.end_bytes = end;
    }
    held.skipped_bytes = file.size_bytes().saturating_sub(held.end_bytes);
    Ok(held)
}

/// True for what is not a whole frame, nor a file's head with one: an append that broke off. Else
/// another process has added it.
fn is_torn(behind: &[u8]) -> bool {
    let frame = match behind.get(..MAGIC.len()) {
        Some(begins) if begins == MAGIC => behind.get(HEAD_BYTES..),
        _ => Some(behind),
    };
    let whole = frame.and_then(|frame| {
        let (length, rest) = frame.split_at_checked(4)?;
        let (digest, rest) = rest.split_at_checked(FRAME_BYTES.saturating_sub(4))?;
        let payload = rest.get(..usize::try_from(u32_of(length)?).ok()?)?;
        Some(digest == check(payload))
    });
    whole != Some(true)
}

fn u32_of(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_le_bytes)
}

/// Puts what a frame says into memory. `None` where it is no frame, or not of these dimensions.
fn apply(collection: &mut Collection, dimensions: usize, payload: &[u8]) -> Option<()> {
    let mut decoder = Decoder::new(payload, Profile::DATA);
    if decoder.array().ok()? != 3 {
        return None;
    }
    let label = Label::take(&mut decoder).ok()?;
    let step = decoder.uint().ok()?;
    let list = decoder.item().ok()?;
    decoder.finish().ok()?;
    for item in list.elements() {
        match step {
            0 => {
                let mut parts = item.elements();
                let (id, metadata, unit) = (parts.next()?, parts.next()?, parts.next()?);
                let unit: Vec<f32> = unit
                    .as_byte_string()?
                    .chunks_exact(4)
                    .filter_map(|four| four.first_chunk().copied().map(f32::from_le_bytes))
                    .collect();
                if unit.len() != dimensions {
                    return None;
                }
                let id = Box::from(id.as_text()?);
                let metadata = Canonical::from(metadata);
                collection.put(Record { id, metadata, label }, &unit);
            }
            1 => {
                collection.remove(item.as_text()?);
            }
            _ => return None,
        }
    }
    Some(())
}

/// Reads a file piece by piece, so that a size that it claims decides no allocation.
struct Reader<'a> {
    file: &'a OpenFile,
    bytes: Vec<u8>,
    at: usize,
    read_bytes: u64,
}

impl Reader<'_> {
    /// The next bytes; `None` where the file ends before.
    fn take(&mut self, count: usize) -> Result<Option<&[u8]>, FsError> {
        while self.bytes.len().saturating_sub(self.at) < count {
            self.bytes.drain(..self.at.min(self.bytes.len()));
            self.at = 0;
            let chunk = self.file.read(self.read_bytes, READ_BYTES)?;
            if chunk.bytes.is_empty() {
                return Ok(None);
            }
            let read = u64::try_from(chunk.bytes.len()).unwrap_or(u64::MAX);
            self.read_bytes = self.read_bytes.saturating_add(read);
            self.bytes.extend_from_slice(&chunk.bytes);
        }
        let end = self.at.saturating_add(count);
        let taken = self.bytes.get(self.at..end);
        self.at = end;
        Ok(taken)
    }
}

/// The items of a list, where it is one.
pub(super) fn list(item: Option<Item<'_>>) -> Vec<Item<'_>> {
    item.map(|list| list.elements().collect()).unwrap_or_default()
}
