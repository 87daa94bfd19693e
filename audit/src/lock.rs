//! Who holds a home: a lock of the operating system's on a file in its folder.
//!
//! The lock is the home's and not its store's: whatever a home's log is kept in, one process at a
//! time has the home, and in that process one runtime. It ends with its holder, however that ends.

use std::{fs::File, path::Path, time::Duration};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use syscap_kernel::store::StoreError;

use crate::disk::{self, from_errno, from_io};

/// Whoever holds this file's lock holds the home.
pub const LOCK_FILE: &str = "lock";

/// A reader that looks whether a lock is held takes it for a moment, so one failure to get it
/// says nothing.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Whether a process holds a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockState {
    /// A process holds it.
    Held,
    /// None does.
    Free,
}

/// A home, held: until this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct HomeLock {
    _lock: FileLock,
}

impl HomeLock {
    /// Takes a home, whose folder must be there.
    ///
    /// # Errors
    /// [`StoreError::Locked`] where it is held, in this process or in another;
    /// [`StoreError::Missing`] where there is no such folder; [`StoreError::Full`] or
    /// [`StoreError::Io`].
    pub fn take(home: &Path) -> Result<Self, StoreError> {
        if !home.is_dir() {
            return Err(StoreError::Missing);
        }
        Ok(Self { _lock: FileLock::take(&home.join(LOCK_FILE))? })
    }

    /// Whether somebody holds a home at the moment.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn state(home: &Path) -> Result<LockState, StoreError> {
        FileLock::state(&home.join(LOCK_FILE))
    }
}

/// A file that has one holder.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing is not enough: a process that was just forked has the file open too, until it
        // becomes another program. Where this fails the end of all of them frees it.
        flock(&self.file, FlockOperation::Unlock).unwrap_or(());
    }
}

impl FileLock {
    pub(crate) fn take(path: &Path) -> Result<Self, StoreError> {
        let file = disk::private().create(true).truncate(false).open(path);
        let file = file.map_err(|error| from_io(&error))?;
        for attempt in 1..=ATTEMPTS {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { file }),
                Err(Errno::WOULDBLOCK) if attempt < ATTEMPTS => std::thread::sleep(PAUSE),
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(from_errno(error)),
            }
        }
        Err(StoreError::Locked)
    }

    pub(crate) fn state(path: &Path) -> Result<LockState, StoreError> {
        let file = match disk::open_regular(path) {
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
