//! Reading a home beside the process that holds it.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use syscap_format::{Head, Object, ObjectId, Seq};
use syscap_kernel::{Batch, Next, Room, Store, StoreError};

use super::{files::WRITER_FILE, rows, schema};
use crate::disk;
use crate::lock::{FileLock, HomeLock, LockState};
use crate::reader::LogReader;

/// How many records are read in one transaction: one that stays open keeps the holder's WAL
/// from being reused.
const CHUNK: usize = 4_096;

/// A home, read only. It needs no lock, and sees what the holder has committed.
pub struct SqliteReader {
    connection: Connection,
    home: PathBuf,
}

impl SqliteReader {
    /// Opens a home for reading.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Damaged`], [`StoreError::Newer`],
    /// [`StoreError::Library`] or [`StoreError::Io`].
    pub fn open(home: &Path) -> Result<Self, StoreError> {
        schema::check_library()?;
        disk::expect_database(home)?;
        let connection = schema::open_reader(home)?;
        Ok(Self { connection, home: home.to_path_buf() })
    }

    /// The state of the lock: a process holds the home at the moment, or writes its database
    /// without holding it.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn lock_state(&self) -> Result<LockState, StoreError> {
        match HomeLock::state(&self.home)? {
            LockState::Held => Ok(LockState::Held),
            LockState::Free => FileLock::state(&self.home.join(WRITER_FILE)),
        }
    }

    /// The head of the log; `None` if it is empty.
    pub fn head(&mut self) -> Result<Option<Head>, StoreError> {
        rows::head(&self.connection)
    }

    /// The head of a copy's log that lacks the write-ahead log.
    pub fn head_alone(&self) -> Result<Option<Head>, StoreError> {
        rows::head(&schema::open_alone(&self.home)?)
    }

    /// Gives `each` every record's bytes from `from` on, in order, until it says no.
    pub fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError> {
        let mut from = from;
        loop {
            let (mut read, mut next) = (0_usize, Next::More);
            rows::records(&self.connection, from, &mut |seq, bytes| {
                read = read.saturating_add(1);
                from = seq.next();
                next = each(seq, bytes);
                if read < CHUNK { next } else { Next::Enough }
            })?;
            if read < CHUNK || next == Next::Enough {
                return Ok(());
            }
        }
    }

    /// A control document.
    pub fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        rows::object(&self.connection, id)
    }

    /// The names of all control documents, in order.
    pub fn object_ids(&mut self) -> Result<Vec<ObjectId>, StoreError> {
        rows::object_ids(&self.connection)
    }
}

impl LogReader for SqliteReader {
    fn lock_state(&self) -> Result<LockState, StoreError> {
        Self::lock_state(self)
    }

    fn head(&mut self) -> Result<Option<Head>, StoreError> {
        Self::head(self)
    }

    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError> {
        Self::records(self, from, each)
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        Self::object(self, id)
    }

    fn object_ids(&mut self) -> Result<Vec<ObjectId>, StoreError> {
        Self::object_ids(self)
    }
}

/// To replay the log to look at it: nothing can be committed.
impl Store for SqliteReader {
    fn commit(&mut self, _: &Batch) -> Result<(), StoreError> {
        Err(StoreError::Poisoned)
    }

    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError> {
        Self::records(self, from, each)
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        Self::object(self, id)
    }

    fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        rows::vault(&self.connection, seq)
    }

    fn vault_len(&mut self, seq: Seq) -> Result<Option<usize>, StoreError> {
        rows::vault_len(&self.connection, seq)
    }

    fn room(&mut self) -> Result<Room, StoreError> {
        Ok(Room::Reserve)
    }
}

impl std::fmt::Debug for SqliteReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteReader").field("home", &self.home).finish_non_exhaustive()
    }
}
