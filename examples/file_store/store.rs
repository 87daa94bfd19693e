//! A store of one's own: log, control documents and vault in one append-only file.
//!
//! It is small and keeps every rule that `syscap::kernel::store::Store` states; the store kit says
//! so (`tests/stores.rs`). Take it as a pattern for a store elsewhere. What the database has and
//! this has not: an index on the disk (opening reads the whole file), a reserve that is given up
//! when the disk is full, and readers beside the holder.
//!
//! ```text
//! file   = "syscap-log" version:u16 frame*
//! frame  = length:u32 !length:u32 leaf(body):32 body     one batch; numbers are little-endian
//! body   = entry+
//! entry  = what:u8 key:32 length:u32 bytes
//! ```
//!
//! A batch is one frame, written and synced before the next one begins. So a crash can leave only
//! the last frame unfinished: it ends where the file ends, and is cut off when the file is opened.
//! Any other frame that does not check out is damage, and the file is not opened.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

use syscap::kernel::{
    hash::leaf,
    id::{ObjectId, Seq},
    object::{Object, ObjectKind},
    store::{Batch, Head, Next, Room, Store, StoreError},
};

const MAGIC: &[u8; 10] = b"syscap-log";
const VERSION: u16 = 1;
const FILE_HEADER: usize = 12;
const FRAME_HEADER: usize = 40;
/// Below this much free room no new call is taken: what runs can still be settled.
const ROOM_BYTES_MIN: u64 = 16 << 20;

/// What an entry is.
const RECORD: u8 = 0;
const OBJECT: u8 = 1;
const ROW: u8 = 2;

/// An entry's name: what it is, and an object's id or a record's number.
type Key = (u8, [u8; 32]);

/// Where something lies in the file.
#[derive(Clone, Copy)]
struct Span {
    at: u64,
    len: usize,
}

/// The holder of a file. It is the only one, until it is dropped.
pub(crate) struct FileStore {
    file: File,
    end: u64,
    head: Option<Head>,
    records: Vec<Span>,
    others: BTreeMap<Key, Span>,
    poisoned: bool,
}

impl FileStore {
    /// Makes a store in a file that must not exist.
    pub(crate) fn create(path: &Path) -> Result<Self, StoreError> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(path);
        let mut store = Self::over(file.map_err(failed)?)?;
        store.append(&[&MAGIC[..], &VERSION.to_le_bytes()].concat())?;
        // Its name is durable when the folder is.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = File::open(folder.unwrap_or(Path::new(".")));
        folder.and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(store)
    }

    /// Opens one that is there, and cuts off what a crash left unfinished.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let mut store = Self::over(file.map_err(failed)?)?;
        let len = store.file.metadata().map_err(failed)?.len();
        let header = store.read(Span { at: 0, len: FILE_HEADER })?;
        let version = header.strip_prefix(MAGIC).and_then(|rest| rest.try_into().ok());
        match version.map(u16::from_le_bytes).ok_or(StoreError::Damaged)? {
            VERSION => store.end = FILE_HEADER as u64,
            other => return Err(StoreError::Newer(u32::from(other))),
        }
        while let Some(body) = store.frame(len)? {
            store.learn(&body).ok_or(StoreError::Damaged)?;
        }
        if store.end < len {
            let cut = store.file.set_len(store.end).and_then(|()| store.file.sync_all());
            cut.map_err(failed)?;
        }
        Ok(store)
    }

    fn over(file: File) -> Result<Self, StoreError> {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Locked),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let (records, others) = (Vec::new(), BTreeMap::new());
        Ok(Self { file, end: 0, head: None, records, others, poisoned: false })
    }

    /// The body of the next frame; `None` where there is no whole one any more.
    fn frame(&self, file_len: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let left = file_len.saturating_sub(self.end);
        if left < FRAME_HEADER as u64 {
            return Ok(None);
        }
        let header = self.read(Span { at: self.end, len: FRAME_HEADER })?;
        let (len, rest) = header.split_first_chunk().ok_or(StoreError::Damaged)?;
        let (check, hash) = rest.split_first_chunk().ok_or(StoreError::Damaged)?;
        let len = u32::from_le_bytes(*len);
        // A length that does not check out does not say where its frame ends.
        if len != !u32::from_le_bytes(*check) {
            return Err(StoreError::Damaged);
        }
        let frame = FRAME_HEADER as u64 + u64::from(len);
        if frame > left {
            return Ok(None);
        }
        let at = self.end + FRAME_HEADER as u64;
        let body = self.read(Span { at, len: len as usize })?;
        match leaf(&body).as_bytes() == hash {
            true => Ok(Some(body)),
            false if frame == left => Ok(None),
            false => Err(StoreError::Damaged),
        }
    }

    /// Takes up what the body of the next frame holds.
    fn learn(&mut self, body: &[u8]) -> Option<()> {
        let start = self.end + FRAME_HEADER as u64;
        let mut left = body;
        while let Some((what, rest)) = left.split_first() {
            let (key, rest) = rest.split_first_chunk::<32>()?;
            let (len, rest) = rest.split_first_chunk()?;
            let span = Span {
                at: start + (body.len() - rest.len()) as u64,
                len: u32::from_le_bytes(*len) as usize,
            };
            let (bytes, rest) = rest.split_at_checked(span.len)?;
            if *what == RECORD {
                let seq = self.head.map_or(Seq::GENESIS, |head| head.seq.next());
                self.head = Some(Head { seq, leaf: leaf(bytes) });
                self.records.push(span);
            } else {
                self.others.entry((*what, *key)).or_insert(span);
            }
            left = rest;
        }
        self.end = start + body.len() as u64;
        Some(())
    }

    fn write(&mut self, batch: &Batch) -> Result<(), StoreError> {
        if batch.after() != self.head {
            return Err(StoreError::HeadMoved);
        }
        let (body, at) = (body_of(batch)?, self.end);
        let len = u32::try_from(body.len()).map_err(|_| StoreError::Full)?;
        let hash = leaf(&body);
        let header = [&len.to_le_bytes()[..], &(!len).to_le_bytes(), hash.as_bytes()];
        self.append(&[&header.concat(), &body[..]].concat())?;
        self.end = at;
        self.learn(&body).ok_or(StoreError::Damaged)
    }

    /// Writes at the end, and returns when that is durable.
    fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let written = self.file.write_all_at(bytes, self.end).and_then(|()| self.file.sync_data());
        self.end += bytes.len() as u64;
        written.map_err(failed)
    }

    fn read(&self, span: Span) -> Result<Vec<u8>, StoreError> {
        let mut bytes = vec![0; span.len];
        self.file.read_exact_at(&mut bytes, span.at).map_err(failed)?;
        Ok(bytes)
    }

    fn other(&self, key: Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.others.get(&key).map(|span| self.read(*span)).transpose()
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        // Closing is not enough where a child process was just begun: it has the file open too.
        drop(self.file.unlock());
    }
}

impl Store for FileStore {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        if self.poisoned {
            return Err(StoreError::Poisoned);
        }
        let written = self.write(batch);
        // What lies at the end of the file is unknown then: whoever opens it next finds out.
        self.poisoned = written.is_err();
        written
    }

    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError> {
        let mut seq = from;
        for span in self.records.iter().skip(usize::try_from(from.get()).unwrap_or(usize::MAX)) {
            if each(seq, &self.read(*span)?) == Next::Enough {
                break;
            }
            seq = seq.next();
        }
        Ok(())
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        let Some(bytes) = self.other((OBJECT, *id.as_bytes()))? else { return Ok(None) };
        let (code, bytes) = bytes.split_first().ok_or(StoreError::Damaged)?;
        let kind = ObjectKind::from_code(u64::from(*code)).ok_or(StoreError::Damaged)?;
        Ok(Some(Object { kind, id: *id, bytes: bytes.to_vec() }))
    }

    fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        self.other((ROW, number(seq)))
    }

    fn room(&mut self) -> Result<Room, StoreError> {
        let disk = rustix::fs::fstatvfs(&self.file).map_err(|errno| failed(errno.into()))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        Ok(if free >= ROOM_BYTES_MIN { Room::Enough } else { Room::Reserve })
    }
}

fn body_of(batch: &Batch) -> Result<Vec<u8>, StoreError> {
    let mut body = Vec::new();
    let mut entry = |(what, key): Key, parts: &[&[u8]]| {
        let bytes = parts.concat();
        let len = u32::try_from(bytes.len()).map_err(|_| StoreError::Full)?;
        body.extend([&[what], &key[..], &len.to_le_bytes(), &bytes].concat());
        Ok(())
    };
    for link in batch.links() {
        entry((RECORD, number(link.seq)), &[&link.bytes])?;
    }
    for object in batch.objects() {
        let kind = u8::try_from(object.kind.code()).map_err(|_| StoreError::Damaged)?;
        entry((OBJECT, *object.id.as_bytes()), &[&[kind], &object.bytes])?;
    }
    for write in batch.vault() {
        entry((ROW, number(write.seq)), &[&write.row])?;
    }
    Ok(body)
}

fn number(seq: Seq) -> [u8; 32] {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seq.get().to_le_bytes());
    key
}

fn failed(error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing,
        io::ErrorKind::AlreadyExists => StoreError::Exists,
        io::ErrorKind::StorageFull => StoreError::Full,
        io::ErrorKind::UnexpectedEof => StoreError::Damaged,
        _ => StoreError::Io(error.raw_os_error().unwrap_or(0)),
    }
}
