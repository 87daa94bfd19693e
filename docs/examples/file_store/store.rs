//! A store of one's own: log, control documents and vault in one append-only file.
//!
//! It keeps every rule that `syscap::kernel::Store` states; the store kit says so
//! (`tests/stores.rs`). What the database has and this has not: an index on the disk (opening
//! reads the whole file), a reserve for when the disk is full, readers beside the holder, and a way to
//! cut erased bytes out of the file.
//!
//! ```text
//! file   = "syscap-log" version:u16 frame*
//! frame  = length:u32 !length:u32 leaf(body):32 body     one batch; numbers are little-endian
//! body   = (what:u8 key:32 length:u32 bytes)*
//! ```
//!
//! A batch is one frame, written and synced before the next one begins. So a crash can leave only
//! the last frame unfinished: it ends where the file ends, and is cut off when the file is opened.
//! Any other frame that does not check out is damage, and the file is not opened.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use syscap::audit::disk::sync_parent;
use syscap::audit::sqlite::ROOM_BYTES_MIN;
use syscap::format::{Head, Object, ObjectId, ObjectKind, Seq, leaf};
use syscap::kernel::{Batch, Next, Room, Store, StoreError};

const MAGIC: &[u8; 10] = b"syscap-log";
const VERSION: u16 = 1;
const FILE_HEADER: u64 = 12;
const FRAME_HEADER: u64 = 40;
const RECORD: u8 = 0;
const OBJECT: u8 = 1;
const ROW: u8 = 2;
/// No bytes: the row of that record is erased.
const ERASED: u8 = 3;

/// An entry's name: what it is, and an object's id or a record's number.
type Key = (u8, [u8; 32]);
/// Where something lies in the file, and its length.
type Span = (u64, u64);

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
        store.end = FILE_HEADER;
        // Its name is durable when its folder is.
        sync_parent(path).map_err(failed).map(|()| store)
    }

    /// Opens one that is there, and cuts off what a crash left unfinished.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let mut store = Self::over(file.map_err(failed)?)?;
        let header = store.read((0, FILE_HEADER))?;
        let version = header.strip_prefix(MAGIC).and_then(|rest| rest.try_into().ok());
        match version.map(u16::from_le_bytes).ok_or(StoreError::Damaged)? {
            VERSION => store.end = FILE_HEADER,
            other => return Err(StoreError::Newer(u32::from(other))),
        }
        let len = store.file.metadata().map_err(failed)?.len();
        while let Some(body) = store.frame(len.saturating_sub(store.end))? {
            store.learn(&body).ok_or(StoreError::Damaged)?;
        }
        // What was written before a crash and is whole may not have been synced.
        let cut = store.file.set_len(store.end).and_then(|()| store.file.sync_all());
        cut.map_err(failed).map(|()| store)
    }

    fn over(file: File) -> Result<Self, StoreError> {
        file.try_lock().map_err(|error| failed(error.into()))?;
        let (records, others) = (Vec::new(), BTreeMap::new());
        Ok(Self { file, end: 0, head: None, records, others, poisoned: false })
    }

    /// The body of the next frame; `None` where no whole one is left.
    fn frame(&self, left: u64) -> Result<Option<Vec<u8>>, StoreError> {
        if left < FRAME_HEADER {
            return Ok(None);
        }
        let header = self.read((self.end, FRAME_HEADER))?;
        let (len, rest) = header.split_first_chunk().ok_or(StoreError::Damaged)?;
        let (check, hash) = rest.split_first_chunk().ok_or(StoreError::Damaged)?;
        // A length that does not check out does not say where its frame ends.
        if u32::from_le_bytes(*len) != !u32::from_le_bytes(*check) {
            return Err(StoreError::Damaged);
        }
        let len = u64::from(u32::from_le_bytes(*len));
        let frame = FRAME_HEADER + len;
        if frame > left {
            return Ok(None);
        }
        let body = self.read((self.end + FRAME_HEADER, len))?;
        match leaf(&body).as_bytes() == hash {
            true => Ok(Some(body)),
            false if frame == left => Ok(None),
            false => Err(StoreError::Damaged),
        }
    }

    /// Takes up the next frame, which has this body.
    fn learn(&mut self, body: &[u8]) -> Option<()> {
        let start = self.end + FRAME_HEADER;
        let mut left = body;
        while let Some((what, rest)) = left.split_first() {
            let (key, rest) = rest.split_first_chunk::<32>()?;
            let (len, rest) = rest.split_first_chunk()?;
            let at = start + (body.len() - rest.len()) as u64;
            let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            left = rest;
            let span = (at, bytes.len() as u64);
            if *what == RECORD {
                let seq = self.head.map_or(Seq::GENESIS, |head| head.seq.next());
                self.head = Some(Head { seq, leaf: leaf(bytes) });
                self.records.push(span);
            } else if *what == ERASED {
                self.others.remove(&(ROW, *key));
            } else {
                self.others.entry((*what, *key)).or_insert(span);
            }
        }
        self.end = start + body.len() as u64;
        Some(())
    }

    fn write(&mut self, batch: &Batch) -> Result<(), StoreError> {
        if batch.after() != self.head {
            return Err(StoreError::HeadMoved);
        }
        let body = body_of(batch)?;
        let len = u32::try_from(body.len()).map_err(|_| StoreError::Full)?;
        let (len, check) = (len.to_le_bytes(), (!len).to_le_bytes());
        self.append(&[&len, &check, &leaf(&body).as_bytes()[..], &body].concat())?;
        self.learn(&body).ok_or(StoreError::Damaged)
    }

    /// Writes at the end, and returns when that is durable.
    fn append(&self, bytes: &[u8]) -> Result<(), StoreError> {
        let written = self.file.write_all_at(bytes, self.end);
        written.and_then(|()| self.file.sync_data()).map_err(failed)
    }

    fn read(&self, (at, len): Span) -> Result<Vec<u8>, StoreError> {
        let mut bytes = vec![0; len as usize];
        self.file.read_exact_at(&mut bytes, at).map_err(failed).map(|()| bytes)
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
        let Some(span) = self.others.get(&(OBJECT, *id.as_bytes())) else { return Ok(None) };
        let bytes = self.read(*span)?;
        let (code, bytes) = bytes.split_first().ok_or(StoreError::Damaged)?;
        let kind = ObjectKind::from_code(u64::from(*code)).ok_or(StoreError::Damaged)?;
        Ok(Some(Object { kind, id: *id, bytes: bytes.to_vec() }))
    }

    fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        self.others.get(&(ROW, number(seq))).map(|span| self.read(*span)).transpose()
    }

    fn room(&mut self) -> Result<Room, StoreError> {
        let disk = rustix::fs::fstatvfs(&self.file).map_err(|errno| failed(errno.into()))?;
        let enough = disk.f_bavail.saturating_mul(disk.f_frsize) >= ROOM_BYTES_MIN;
        Ok(if enough { Room::Enough } else { Room::Reserve })
    }
}

fn body_of(batch: &Batch) -> Result<Vec<u8>, StoreError> {
    let mut body = Vec::new();
    let mut entry = |what: u8, key: &[u8], parts: [&[u8]; 2]| {
        let len = u32::try_from(parts.concat().len()).map_err(|_| StoreError::Full)?;
        body.extend([&[what], key, &len.to_le_bytes(), parts[0], parts[1]].concat());
        Ok(())
    };
    for link in batch.links() {
        entry(RECORD, &number(link.seq), [&link.bytes, &[]])?;
    }
    for object in batch.objects() {
        let kind = u8::try_from(object.kind.code()).map_err(|_| StoreError::Damaged)?;
        entry(OBJECT, object.id.as_bytes(), [&[kind], &object.bytes])?;
    }
    for write in batch.vault() {
        entry(ROW, &number(write.seq), [&write.row, &[]])?;
    }
    for seq in batch.erased() {
        entry(ERASED, &number(*seq), [&[], &[]])?;
    }
    Ok(body)
}

fn number(seq: Seq) -> [u8; 32] {
    let bytes = seq.get().to_le_bytes();
    std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0))
}

fn failed(error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing,
        io::ErrorKind::AlreadyExists => StoreError::Exists,
        io::ErrorKind::WouldBlock => StoreError::Locked,
        io::ErrorKind::StorageFull => StoreError::Full,
        io::ErrorKind::UnexpectedEof => StoreError::Damaged,
        _ => StoreError::Io(error.raw_os_error().unwrap_or(0)),
    }
}
