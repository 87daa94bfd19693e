//! The files of a home beside the database, above all the ballast.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, fallocate, openat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use syscap_kernel::StoreError;

use super::settings::ROOM_BYTES_SPARE;
use crate::disk::{DATABASE_FILE, from_errno, from_io, private};

/// Its write-ahead log.
pub const WAL_FILE: &str = "home.db-wal";
/// The index of that, in memory that its users share.
const INDEX_FILE: &str = "home.db-shm";
/// The holder of this file's lock may write the database. It is not the home's lock, which the
/// runtime holds whatever its store is: a database that is opened by itself has one writer too.
pub const WRITER_FILE: &str = "home.db-lock";
/// Given up when the disk is full, so that what runs can be settled.
pub const BALLAST_FILE: &str = "reserve";
/// Size of the ballast in bytes: room for the outcomes of 1,024 calls in flight.
pub const BALLAST_BYTES: u64 = 4 << 20;

/// The result of giving up the ballast.
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

/// Makes an empty file, for its owner only.
pub(super) fn make_file(path: &Path) -> Result<(), StoreError> {
    let made = private().create(true).truncate(true).open(path);
    made.map(drop).map_err(|error| from_io(&error))
}

/// The files of an open database, by their names.
///
/// They are looked at by their names and by handles that can't read (`O_PATH`). Closing any other
/// handle of a file drops the process's POSIX locks of it, which are SQLite's (fcntl(2)).
#[derive(Debug)]
pub(super) struct Names(Vec<Named>);

#[derive(Debug)]
struct Named {
    path: PathBuf,
    /// Without it the inode's number could be another file's by now.
    _handle: OwnedFd,
    found: (u64, u64),
}

impl Names {
    /// The files of a database that was just opened.
    pub(super) fn of(home: &Path) -> Result<Self, StoreError> {
        let home = std::path::absolute(home).map_err(|error| from_io(&error))?;
        let named = [DATABASE_FILE, WAL_FILE, INDEX_FILE].map(|name| {
            let path = home.join(name);
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let handle = openat(CWD, &path, flags, Mode::empty()).map_err(from_errno)?;
            let found = inode(&handle, Path::new("")).map_err(from_errno)?;
            Ok(Named { path, _handle: handle, found })
        });
        Ok(Self(named.into_iter().collect::<Result<_, _>>()?))
    }

    /// Checks that each name is still of the same file.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let is_same = |named: &Named| inode(CWD, &named.path) == Ok(named.found);
        if self.0.iter().all(is_same) { Ok(()) } else { Err(StoreError::Replaced) }
    }
}

/// Whether the largest file of a database may still grow as far as calls want it to, where the
/// process has a limit (`RLIMIT_FSIZE`): a write beyond it fails as on a full disk.
pub(super) fn may_grow(home: &Path, room_bytes_min: u64) -> bool {
    let Some(most) = getrlimit(Resource::Fsize).current else { return true };
    let len = |name| std::fs::metadata(home.join(name)).map_or(0, |meta| meta.len());
    let more = most.saturating_sub(len(DATABASE_FILE).max(len(WAL_FILE)));
    more >= wanted(most, room_bytes_min)
}

/// As many bytes as a disk must have free, but a quarter of a limit at most, and of a small one as
/// much as is to spare: who runs within 4 MiB is not kept from every call.
fn wanted(most: u64, room_bytes_min: u64) -> u64 {
    most.div_euclid(4).max(ROOM_BYTES_SPARE).min(room_bytes_min)
}

/// The device and the inode of a path below a folder; of the handle itself, where it is empty.
///
/// The times are not asked for: who looks at them makes the file system note the next write's to the
/// nanosecond (Linux 6.13, multigrain timestamps), which a commit then waits for.
#[cfg(target_os = "linux")]
fn inode(at: impl AsFd, path: &Path) -> Result<(u64, u64), Errno> {
    use rustix::fs::{StatxFlags, makedev, statx};
    let found = statx(at, path, AtFlags::EMPTY_PATH, StatxFlags::INO)?;
    Ok((makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino))
}

/// The same, elsewhere.
#[cfg(not(target_os = "linux"))]
fn inode(at: impl AsFd, path: &Path) -> Result<(u64, u64), Errno> {
    let found = match path.as_os_str().is_empty() {
        true => rustix::fs::fstat(at)?,
        false => rustix::fs::statat(at, path, AtFlags::empty())?,
    };
    Ok((u64::try_from(found.st_dev).unwrap_or(0), found.st_ino))
}
