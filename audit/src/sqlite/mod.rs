//! A home in one SQLite file: a transaction a batch, one fsync of the WAL each.
//!
//! | file | what it is |
//! |---|---|
//! | `home.db`, `home.db-wal`, `home.db-shm` | records, objects, head and vault |
//! | `home.db-lock` | locked by the process that writes them |
//! | `reserve` | [`BALLAST_BYTES`] that are given up when the disk is full |
//!
//! The reserve is given up where a commit, or opening, finds no room; and taken up again, when the
//! home is opened and while nobody waits, where [`ROOM_BYTES_MIN`] are free besides.
//!
//! The operating system's lock makes the store the only writer; SQLite's own locks only keep
//! readers ([`SqliteReader`]) and writer apart. The process must not open `home.db` by other
//! means than SQLite: closing such a file would drop SQLite's locks.
//!
//! A commit counts only if the three files of the database still have their names:
//! [`StoreError::Replaced`] else. A copy that is written *into* an open `home.db` is not seen so.

mod error;
mod files;
mod reader;
mod rows;
mod schema;
mod settings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, config::DbConfig};
use syscap_format::{Durability, Head, Object, ObjectId, Seq};
use syscap_kernel::{Batch, Next, Room, Settled, Store, StoreError};

use crate::disk::{self, from_io};
use crate::lock::FileLock;
use error::{from_sqlite, within};
use files::{Ballast, Names, Release};
use settings::Pages;

pub use crate::disk::DATABASE_FILE;
pub use files::{BALLAST_BYTES, BALLAST_FILE, WAL_FILE, WRITER_FILE};
pub use reader::SqliteReader;
pub use rows::rows_read;
pub use schema::{APPLICATION_ID, FORMAT};
pub use settings::{ROOM_BYTES_MIN, ROOM_BYTES_SPARE, Settings};

/// A WAL of this size, in bytes, is checkpointed when nobody waits: a few milliseconds' work.
const WAL_BYTES_IDLE: u64 = 4 << 20;
/// A WAL of this size is checkpointed before the next commit, so that it doesn't grow for ever.
const WAL_BYTES_MAX: u64 = 32 << 20;
/// How often, and after how long, a boot's checkpoint is tried again while a reader is in the way.
const SETTLE_TRIES_MAX: u32 = 20;
const SETTLE_PAUSE: Duration = Duration::from_millis(25);
/// How long a commit waits for another program's lock before it says so: whoever commits tries
/// again.
const BUSY: Duration = Duration::from_millis(250);
/// The WAL bytes of a commit besides its content: one page for each table that it touches.
const WAL_BYTES_A_COMMIT: u64 = 8 * 4_096;

/// The holder of a home. It is the only one, until it is dropped.
pub struct SqliteStore {
    // The connection is closed before the lock is given up: fields drop in this order.
    connection: Connection,
    names: Names,
    ballast: Ballast,
    settings: Settings,
    home: PathBuf,
    poisoned: bool,
    counts: Counts,
    /// At least what the WAL holds that was not checkpointed.
    wal_bytes: u64,
    /// True from an erasure on until its pages are gone from the WAL.
    purges: bool,
    _lock: FileLock,
}

/// A store's operations since it was opened, for tests and benchmarks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Transactions committed; at full durability that is also fsyncs of the WAL.
    pub commits: u64,
    /// Records in them.
    pub records: u64,
    /// Checkpoints begun.
    pub checkpoints: u64,
    /// Transactions tried again after the ballast was given up.
    pub retries: u64,
}

impl SqliteStore {
    /// Makes a home in a folder, which is made too unless it is there.
    ///
    /// # Errors
    /// [`StoreError::Exists`] where there is a home, [`StoreError::Locked`],
    /// [`StoreError::Library`], [`StoreError::Full`] or [`StoreError::Io`].
    pub fn create(home: &Path, durability: Durability) -> Result<Self, StoreError> {
        Self::create_with(home, &Settings::new(durability))
    }

    /// The same, with settings.
    ///
    /// # Errors
    /// As [`SqliteStore::create`].
    pub fn create_with(home: &Path, settings: &Settings) -> Result<Self, StoreError> {
        schema::check_library()?;
        disk::make_folder(home).map_err(|error| from_io(&error))?;
        let lock = FileLock::take(&home.join(WRITER_FILE))?;
        if std::fs::symlink_metadata(home.join(DATABASE_FILE)).is_ok() {
            return Err(StoreError::Exists);
        }
        schema::create(home)?;
        Self::with(home, settings, lock)
    }

    /// Opens a home.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Locked`], [`StoreError::Damaged`],
    /// [`StoreError::Newer`], [`StoreError::Library`] or [`StoreError::Io`];
    /// [`StoreError::Full`] where the disk is full and what was kept back is given up.
    pub fn open(home: &Path, durability: Durability) -> Result<Self, StoreError> {
        Self::open_with(home, &Settings::new(durability))
    }

    /// The same, with settings.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub fn open_with(home: &Path, settings: &Settings) -> Result<Self, StoreError> {
        schema::check_library()?;
        disk::expect_database(home)?;
        let lock = FileLock::take(&home.join(WRITER_FILE))?;
        Self::with(home, settings, lock)
    }

    fn with(home: &Path, settings: &Settings, lock: FileLock) -> Result<Self, StoreError> {
        let mut ballast = Ballast::of(home);
        let connection = match schema::open_writer(home, settings.durability) {
            // Who revokes or settles on a full disk has to open the home first.
            Err(StoreError::Full) if ballast.release()? == Release::Released => {
                schema::open_writer(home, settings.durability)
            }
            opened => opened,
        }?;
        if let Pages::AtMost(pages) = settings.pages {
            limit_pages(&connection, pages)?;
        }
        connection.busy_timeout(BUSY).map_err(from_sqlite)?;
        let mut store = Self {
            connection,
            names: Names::of(home)?,
            ballast,
            settings: *settings,
            home: home.to_path_buf(),
            poisoned: false,
            counts: Counts::default(),
            // What a crash left in the WAL is checkpointed at the first chance.
            wal_bytes: WAL_BYTES_IDLE,
            // And so it is if it has pages from before an erasure.
            purges: true,
            _lock: lock,
        };
        store.refill()?;
        Ok(store)
    }

    /// How many transactions were committed.
    pub const fn commits(&self) -> u64 {
        self.counts.commits
    }

    /// The operations since the store was opened.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The home's folder.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The head of the log; `None` if it is empty.
    pub fn head(&mut self) -> Result<Option<Head>, StoreError> {
        rows::head(&self.connection)
    }

    /// True if the ballast is there to be given up.
    #[must_use]
    pub const fn has_ballast(&self) -> bool {
        self.ballast.is_present()
    }

    fn write(&mut self, batch: &Batch) -> Result<(), StoreError> {
        if self.wal_bytes >= WAL_BYTES_MAX {
            self.checkpoint()?;
        }
        let result = match self.transact(batch) {
            Err(StoreError::Full) if self.ballast.release()? == Release::Released => {
                if let Pages::AtMost(pages) = self.settings.pages {
                    let more = u32::try_from(BALLAST_BYTES.div_euclid(4_096)).unwrap_or(0);
                    limit_pages(&self.connection, pages.saturating_add(more))?;
                }
                self.counts.retries = self.counts.retries.saturating_add(1);
                self.transact(batch)
            }
            result => result,
        };
        result?;
        self.purges |= !batch.erased().is_empty();
        let bytes = rows::size(batch);
        let grown = bytes.saturating_mul(2).saturating_add(WAL_BYTES_A_COMMIT);
        self.wal_bytes = self.wal_bytes.saturating_add(grown);
        let records = u64::try_from(batch.links().len()).unwrap_or(u64::MAX);
        self.counts.records = self.counts.records.saturating_add(records);
        self.counts.commits = self.counts.commits.saturating_add(1);
        Ok(())
    }

    fn transact(&self, batch: &Batch) -> Result<(), StoreError> {
        rows::execute(&self.connection, "BEGIN IMMEDIATE")?;
        let written = rows::write(&self.connection, batch)
            .and_then(|()| rows::execute(&self.connection, "COMMIT"))
            .map_err(within);
        // Some errors end the transaction by themselves.
        if written.is_err() && !self.connection.is_autocommit() {
            rows::execute(&self.connection, "ROLLBACK").map_err(within)?;
        }
        written
    }

    /// Moves what the WAL holds into the database, as far as no reader is in the way. A full
    /// disk is no error here: what is committed is safe in the WAL.
    fn checkpoint(&mut self) -> Result<(), StoreError> {
        self.counts.checkpoints = self.counts.checkpoints.saturating_add(1);
        let done = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            Ok(row.get::<_, i64>(0)? == 0 && row.get::<_, i64>(1)? == row.get::<_, i64>(2)?)
        });
        self.wal_bytes = match done.map_err(from_sqlite) {
            Ok(true) => 0,
            // Once more after as much has been written again.
            Ok(false) | Err(StoreError::Full | StoreError::Busy) => WAL_BYTES_IDLE.div_euclid(2),
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// Moves all of the WAL into the database, waiting half a second at the most for readers:
    /// SQLite itself would wait its own busy time at each try, and a reader may stay for hours.
    fn settle_all(&mut self) -> Result<Settled, StoreError> {
        self.connection.busy_timeout(SETTLE_PAUSE).map_err(from_sqlite)?;
        let settled = self.settle_tries();
        self.connection.busy_timeout(BUSY).map_err(from_sqlite)?;
        settled
    }

    fn settle_tries(&mut self) -> Result<Settled, StoreError> {
        for _ in 0..SETTLE_TRIES_MAX {
            self.counts.checkpoints = self.counts.checkpoints.saturating_add(1);
            let done = self.connection.query_row("PRAGMA wal_checkpoint(FULL)", [], |row| {
                Ok(row.get::<_, i64>(0)? == 0 && row.get::<_, i64>(1)? == row.get::<_, i64>(2)?)
            });
            match done.map_err(from_sqlite) {
                Ok(true) => {
                    self.wal_bytes = 0;
                    return Ok(Settled::Whole);
                }
                // SQLite has waited for the reader.
                Ok(false) | Err(StoreError::Busy) => {}
                // What is committed is safe in the WAL.
                Err(StoreError::Full) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(Settled::NotYet)
    }

    /// Moves all of the WAL into the database, and cuts it off: pages from before an erasure stay in
    /// it otherwise, until they are written over.
    fn cut_wal(&mut self, wait: Duration) -> Result<Settled, StoreError> {
        self.counts.checkpoints = self.counts.checkpoints.saturating_add(1);
        self.connection.busy_timeout(wait).map_err(from_sqlite)?;
        let done = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok(row.get::<_, i64>(0)? == 0));
        self.connection.busy_timeout(BUSY).map_err(from_sqlite)?;
        match done.map_err(from_sqlite) {
            Ok(true) => {
                (self.wal_bytes, self.purges) = (0, false);
                Ok(Settled::Whole)
            }
            Ok(false) | Err(StoreError::Full | StoreError::Busy) => Ok(Settled::NotYet),
            Err(error) => Err(error),
        }
    }

    fn free_bytes(&self) -> Result<u64, StoreError> {
        let free = disk::free_bytes(&self.home).map_err(|error| from_io(&error))?;
        match self.settings.pages {
            Pages::Unlimited => Ok(free),
            Pages::AtMost(_) => Ok(free.min(self.free_pages()?.saturating_mul(4_096))),
        }
    }

    fn free_pages(&self) -> Result<u64, StoreError> {
        let number = |name| {
            let value =
                self.connection.pragma_query_value(None, name, |row| rows::unsigned(row, 0));
            value.map_err(from_sqlite)
        };
        let free = number("max_page_count")?.saturating_sub(number("page_count")?);
        Ok(free.saturating_add(number("freelist_count")?))
    }

    /// Makes the ballast again, if there is room for it and to spare.
    fn refill(&mut self) -> Result<(), StoreError> {
        let calls = self.settings.room_bytes_min.saturating_add(ROOM_BYTES_SPARE);
        let wanted = calls.saturating_add(BALLAST_BYTES);
        if !self.ballast.is_present() && self.free_bytes()? >= wanted {
            self.ballast.fill()?;
        }
        Ok(())
    }

    /// From here on nothing more is written: what the file holds is settled by whoever opens
    /// it next, not by this connection when it closes.
    fn poison(&mut self) {
        self.poisoned = true;
        let no_checkpoint = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        drop(self.connection.set_db_config(no_checkpoint, true));
    }

    fn usable(&self) -> Result<(), StoreError> {
        if self.poisoned { Err(StoreError::Poisoned) } else { Ok(()) }
    }
}

impl Store for SqliteStore {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.usable()?;
        // What went into a file that has lost its name is in nobody's log.
        let written = self.write(batch).and_then(|()| self.names.check());
        if written.as_ref().is_err_and(|error| *error != StoreError::Busy) {
            self.poison();
        }
        written
    }

    fn ready(&mut self) -> Result<(), StoreError> {
        self.usable()?;
        rows::execute(&self.connection, "BEGIN IMMEDIATE")?;
        rows::execute(&self.connection, "ROLLBACK")
    }

    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError> {
        self.usable()?;
        rows::records(&self.connection, from, each)
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        self.usable()?;
        rows::object(&self.connection, id)
    }

    fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        self.usable()?;
        rows::vault(&self.connection, seq)
    }

    fn vault_len(&mut self, seq: Seq) -> Result<Option<usize>, StoreError> {
        self.usable()?;
        rows::vault_len(&self.connection, seq)
    }

    fn reader(&self) -> Result<Option<Box<dyn Store>>, StoreError> {
        Ok(Some(Box::new(SqliteReader::open(&self.home)?)))
    }

    fn room(&mut self) -> Result<Room, StoreError> {
        self.usable()?;
        let wanted = self.settings.room_bytes_min;
        let enough = self.free_bytes()? >= wanted && files::may_grow(&self.home, wanted);
        Ok(if enough { Room::Enough } else { Room::Reserve })
    }

    fn settle(&mut self) -> Result<Settled, StoreError> {
        self.usable()?;
        let settled = self.settle_all();
        if settled.is_err() {
            self.poison();
        }
        settled
    }

    fn purge(&mut self) -> Result<Settled, StoreError> {
        self.usable()?;
        let purged = self.cut_wal(SETTLE_PAUSE);
        if purged.is_err() {
            self.poison();
        }
        purged
    }

    fn idle(&mut self) -> Result<(), StoreError> {
        self.usable()?;
        if self.purges {
            let purged = self.cut_wal(Duration::ZERO);
            if purged.is_err() {
                self.poison();
            }
            purged?;
        }
        if self.wal_bytes >= WAL_BYTES_IDLE {
            let done = self.checkpoint();
            if done.is_err() {
                self.poison();
            }
            done?;
        }
        self.refill()
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("home", &self.home).finish_non_exhaustive()
    }
}

/// The version of the SQLite library, as `3.51.3`.
#[must_use]
pub fn library_version() -> &'static str {
    rusqlite::version()
}

fn limit_pages(connection: &Connection, pages: u32) -> Result<(), StoreError> {
    connection.pragma_update(None, "max_page_count", pages).map_err(from_sqlite)
}
