//! The lock of a home: an operating system's lock on a file in its folder.
//!
//! The lock is the home's and not its store's: whatever a home's log is kept in, one process at a
//! time has the home, and in that process one runtime. It ends with its holder, however that ends.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
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
        locked().find(|(_, locked)| locked.has(&lock)).map(|(process, _)| process)
    }

    /// The only home that a process of this user holds, as the process table shows them. A process
    /// that keeps its open files to itself shows those that its command line names; none is the only
    /// one beside a process that shows neither.
    pub fn only() -> Option<PathBuf> {
        let mut homes = BTreeSet::new();
        for (process, locked) in locked() {
            let hidden = matches!(locked, Locked::Inodes(_));
            let folders = locked.homes(process);
            if hidden && folders.is_empty() && is_of_this_user(process) {
                return None;
            }
            homes.extend(folders);
        }
        let own = |folder: &PathBuf| {
            let meta = fs::metadata(folder.join("home.db"));
            meta.is_ok_and(|meta| meta.is_file() && meta.uid() == geteuid().as_raw())
        };
        let mut own = homes.into_iter().filter(own);
        own.next().filter(|_| own.next().is_none())
    }
}

/// True if the process runs as this user. The owner of its folder in `/proc` doesn't say it: of a
/// process that keeps things to itself that is root.
fn is_of_this_user(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let real = user.and_then(|users| users.split_whitespace().next());
    real.and_then(|user| user.parse().ok()) == Some(geteuid().as_raw())
}

/// What is seen of a process that holds a lock of a file.
enum Locked {
    /// The files that it has open.
    Files(Vec<PathBuf>),
    /// The inodes of the locked files. A program that opens keys shows no more.
    Inodes(BTreeSet<u64>),
}

impl Locked {
    /// True if it holds the lock of a home.
    fn has(&self, lock: &fs::Metadata) -> bool {
        let is_lock = |place: &PathBuf| {
            let meta = fs::metadata(place);
            meta.is_ok_and(|meta| (meta.dev(), meta.ino()) == (lock.dev(), lock.ino()))
        };
        match self {
            Self::Files(files) => files.iter().any(is_lock),
            // The device in the table is not always that of `stat`.
            Self::Inodes(inodes) => inodes.contains(&lock.ino()),
        }
    }

    /// The folders of the homes that it holds.
    fn homes(self, process: u32) -> Vec<PathBuf> {
        let is_lock = |file: &PathBuf| file.file_name().is_some_and(|name| name == LOCK_FILE);
        match self {
            Self::Files(files) => {
                let named = files.into_iter().filter_map(|file| fs::read_link(file).ok());
                let locks = named.filter(is_lock);
                locks.filter_map(|file| file.parent().map(Path::to_path_buf)).collect()
            }
            Self::Inodes(inodes) => {
                let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
                let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
                let folders =
                    words.filter_map(|word| fs::canonicalize(OsStr::from_bytes(word)).ok());
                let holds = |folder: &PathBuf| {
                    let lock = fs::metadata(folder.join(LOCK_FILE));
                    lock.is_ok_and(|lock| inodes.contains(&lock.ino()))
                };
                folders.filter(holds).collect()
            }
        }
    }
}

/// The processes that hold locks of files. Another user's process shows no files.
fn locked() -> impl Iterator<Item = (u32, Locked)> {
    // `1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF`. The device and the inode are not always
    // those of `stat`, so the open files of the process are looked at, where they are shown.
    let of = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["FLOCK", _, "WRITE", process, file, ..] = words.get(1..)? else { return None };
        let inode = file.rsplit(':').next().and_then(|inode| inode.parse::<u64>().ok());
        Some((process.parse::<u32>().ok()?, inode))
    };
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut processes: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for (process, inode) in locks.lines().filter_map(of) {
        processes.entry(process).or_default().extend(inode);
    }
    processes.into_iter().map(|(process, inodes)| {
        let locked = match fs::read_dir(format!("/proc/{process}/fd")) {
            Ok(files) => Locked::Files(files.flatten().map(|entry| entry.path()).collect()),
            Err(_) => Locked::Inodes(inodes),
        };
        (process, locked)
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
