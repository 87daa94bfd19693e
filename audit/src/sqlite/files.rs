//! The files of a home beside the database: the lock and the ballast.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock},
    io::Errno,
};
use syscap_kernel::store::StoreError;

use super::error::{from_errno, from_io};

/// The database.
pub const DATABASE_FILE: &str = "home.db";
/// Its write-ahead log.
pub const WAL_FILE: &str = "home.db-wal";
/// Whoever holds this file's lock holds the home.
pub const LOCK_FILE: &str = "lock";
/// Given up when the disk is full, so that what runs can be settled.
pub const BALLAST_FILE: &str = "reserve";
/// Size of the ballast in bytes: room for the outcomes of 1,024 calls in flight.
pub const BALLAST_BYTES: u64 = 4 << 20;

/// A reader that looks whether the lock is held takes it for a moment, so one failure to get it
/// says nothing.
const LOCK_ATTEMPTS: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Whether a process holds a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockState {
    /// A process holds it.
    Held,
    /// None does.
    Free,
}

/// The lock of a home, held until this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub(super) struct HomeLock {
    _file: File,
}

impl HomeLock {
    pub(super) fn take(home: &Path) -> Result<Self, StoreError> {
        let file = private().create(true).truncate(false).open(home.join(LOCK_FILE));
        let file = file.map_err(|error| from_io(&error))?;
        for attempt in 1..=LOCK_ATTEMPTS {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(Errno::WOULDBLOCK) if attempt < LOCK_ATTEMPTS => {
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(from_errno(error)),
            }
        }
        Err(StoreError::Locked)
    }

    pub(super) fn look(home: &Path) -> Result<LockState, StoreError> {
        let file = match open_regular(&home.join(LOCK_FILE)) {
            Ok(file) => file,
            // Nobody ever held it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(LockState::Free);
            }
            Err(error) => return Err(from_io(&error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(LockState::Free),
            Err(Errno::WOULDBLOCK) => Ok(LockState::Held),
            Err(error) => Err(from_errno(error)),
        }
    }
}

/// Whether there was ballast to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    Released,
    Spent,
}

/// A file that takes up room until the room is needed.
#[derive(Debug)]
pub(super) struct Ballast {
    path: PathBuf,
    present: bool,
}

impl Ballast {
    /// The ballast of a home, whether or not it is there.
    pub(super) fn of(home: &Path) -> Self {
        let path = home.join(BALLAST_FILE);
        let whole = std::fs::metadata(&path).is_ok_and(|meta| meta.len() == BALLAST_BYTES);
        Self { path, present: whole }
    }

    pub(super) const fn is_present(&self) -> bool {
        self.present
    }

    /// Takes the room up. Without room there is no ballast, which is no error: there will be
    /// when there is room again.
    pub(super) fn fill(&mut self) -> Result<(), StoreError> {
        match self.try_fill() {
            Ok(()) => self.present = true,
            Err(StoreError::Full) => drop(self.release()?),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn try_fill(&self) -> Result<(), StoreError> {
        // Nothing is truncated that we did not make: a link of that name is refused.
        let file = private().create(true).truncate(false).open(&self.path);
        let mut file = file.map_err(|error| from_io(&error))?;
        file.set_len(0).map_err(|error| from_io(&error))?;
        match fallocate(&file, FallocateFlags::empty(), 0, BALLAST_BYTES) {
            Ok(()) => {}
            // A file system that can't set room aside gets it written.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let zeros = [0_u8; 4_096];
                for _ in 0..BALLAST_BYTES.div_ceil(4_096) {
                    file.write_all(&zeros).map_err(|error| from_io(&error))?;
                }
            }
            Err(error) => return Err(from_errno(error)),
        }
        file.sync_all().map_err(|error| from_io(&error))
    }

    pub(super) fn release(&mut self) -> Result<Release, StoreError> {
        let was = self.present;
        self.present = false;
        match std::fs::remove_file(&self.path) {
            Ok(()) if was => Ok(Release::Released),
            Ok(()) => Ok(Release::Spent),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Release::Spent),
            Err(error) => Err(from_io(&error)),
        }
    }
}

/// Opens a regular file to read, without waiting for the other end of a pipe.
pub(crate) fn open_regular(path: &Path) -> std::io::Result<File> {
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(std::io::Error::from(std::io::ErrorKind::InvalidInput))
    }
}

/// Makes the home's folder, for its owner only, unless it is there.
pub(super) fn make_folder(home: &Path) -> Result<(), StoreError> {
    if home.is_dir() {
        return Ok(());
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(home);
    made.map_err(|error| from_io(&error))?;
    match home.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => sync_folder(parent),
        None => sync_folder(Path::new(".")),
    }
}

/// Makes an empty file, for its owner only.
pub(super) fn make_file(path: &Path) -> Result<(), StoreError> {
    let made = private().create(true).truncate(true).open(path);
    made.map(drop).map_err(|error| from_io(&error))
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| from_io(&error))
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    // A link of that name would lead elsewhere, and a pipe would wait.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    options.write(true).mode(0o600).custom_flags(flags);
    options
}
