//! The lock of a home: an operating system's lock on a file in its folder.
//!
//! The lock is the home's and not its store's: whatever a home's log is kept in, one process at a
//! time has the home, and in that process one runtime. It ends with its holder, however that ends.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::geteuid;
use syscap_kernel::StoreError;

use crate::disk::{self, from_errno, from_io};

/// The holder of this file's lock holds the home.
pub const LOCK_FILE: &str = "lock";

/// A reader that looks whether a lock is held takes it for a moment, so one failure to get it
/// says nothing.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// The state of a home's lock.
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

    /// The state of a home's lock at the moment.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn state(home: &Path) -> Result<LockState, StoreError> {
        FileLock::state(&home.join(LOCK_FILE))
    }

    /// The process that holds a home, as the process table shows it to this user: for a person to
    /// read. `None` where none holds it, or where the process belongs to another user or another
    /// process namespace.
    pub fn holder(home: &Path) -> Option<u32> {
        let lock = fs::metadata(home.join(LOCK_FILE)).ok()?;
        let is_lock = |place: &PathBuf| {
            let meta = fs::metadata(place);
            meta.is_ok_and(|meta| (meta.dev(), meta.ino()) == (lock.dev(), lock.ino()))
        };
        locked().find(|(_, files)| files.iter().any(is_lock)).map(|(process, _)| process)
    }

    /// The homes that processes of this user hold, as the process table shows them.
    pub fn held() -> BTreeSet<PathBuf> {
        let files = locked().flat_map(|(_, files)| files);
        let named = files.filter_map(|file| fs::read_link(file).ok());
        let locks = named.filter(|file| file.file_name().is_some_and(|name| name == LOCK_FILE));
        let folders = locks.filter_map(|file| file.parent().map(Path::to_path_buf));
        let own = |folder: &PathBuf| {
            let meta = fs::metadata(folder.join("home.db"));
            meta.is_ok_and(|meta| meta.is_file() && meta.uid() == geteuid().as_raw())
        };
        folders.filter(own).collect()
    }
}

/// The processes that hold a lock of a file, each with the files that it has open. Another user's
/// process shows no files.
fn locked() -> impl Iterator<Item = (u32, Vec<PathBuf>)> {
    // `1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF`. The device and the inode are not always
    // those of `stat`, so the open files of the process are looked at.
    let of = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["FLOCK", _, "WRITE", process, ..] = words.get(1..)? else { return None };
        process.parse::<u32>().ok()
    };
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let processes: BTreeSet<u32> = locks.lines().filter_map(of).collect();
    processes.into_iter().map(|process| {
        let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten();
        (process, files.flatten().map(|entry| entry.path()).collect())
    })
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
