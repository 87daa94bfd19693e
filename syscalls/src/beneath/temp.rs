//! The temporary file that becomes the new file.

use std::os::fd::OwnedFd;

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
use rustix::fs::RenameFlags;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::base::Base;
use super::error::FsError;
use super::location::Location;
use super::write::{Charge, Effect, Existing, Refused, State, Write, charge};

/// The largest piece that is charged and written at once.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// The permissions of a new file, before the process's umask.
const NEW_FILE: Mode = Mode::from_raw_mode(0o644);

/// The name of a temporary file, `.syscap-<unique>.tmp`.
///
/// The caller sees to it that no two writes use the same one. Taken from what is durable before
/// the write starts, it lets [`Base::discard`] find what a crash left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TempName(String);

impl TempName {
    /// A name with this unique part: 1 to 64 of `[A-Za-z0-9_-]`.
    ///
    /// # Errors
    /// [`FsError::BadName`].
    pub fn new(unique: &str) -> Result<Self, FsError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if unique.is_empty() || unique.len() > 64 || !unique.bytes().all(plain) {
            return Err(FsError::BadName);
        }
        Ok(Self(format!(".syscap-{unique}.tmp")))
    }

    /// The file name.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The result of [`Base::discard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discarded {
    /// The temporary file was there and is gone, durably: the write has not been made and can't be
    /// any more.
    Removed {
        /// Its size.
        size_bytes: u64,
    },
    /// It was not there.
    Absent,
}

impl Base {
    /// Removes the temporary file that a write to `at` left when the process or machine died.
    ///
    /// No start searches for such files: who knows the writes that have no outcome knows their
    /// names. Until then they can't be listed, read or written.
    ///
    /// # Errors
    /// Any of a walk or of the removal; a missing folder is [`Discarded::Absent`].
    pub fn discard(&self, at: &Location, temp: &TempName) -> Result<Discarded, FsError> {
        let (parent, _) = at.split()?;
        let dir = match self.open_directory(parent) {
            Err(FsError::NotFound) => return Ok(Discarded::Absent),
            opened => opened?,
        };
        let name = temp.as_str();
        let size_bytes = match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => u64::try_from(found.st_size).unwrap_or(u64::MAX),
            Err(Errno::NOENT) => return Ok(Discarded::Absent),
            Err(errno) => return Err(errno.into()),
        };
        match rustix::fs::unlinkat(&dir, name, AtFlags::empty()) {
            Ok(()) => {
                rustix::fs::fsync(&dir)?;
                Ok(Discarded::Removed { size_bytes })
            }
            Err(Errno::NOENT) => Ok(Discarded::Absent),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Creates the temporary file. While it is to have permissions of its own, which may be narrow, no
/// one else can look into it.
pub(super) fn create(
    dir: &OwnedFd,
    temp: &TempName,
    permissions: Option<Mode>,
) -> Result<OwnedFd, FsError> {
    let mode = if permissions.is_some() { Mode::RUSR | Mode::WUSR } else { NEW_FILE };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(dir, temp.as_str(), flags, mode) {
        Ok(fd) => Ok(fd),
        // Left by a crash, or the caller's name isn't unique. It is not ours to write to.
        Err(Errno::EXIST) => Err(FsError::Busy),
        Err(errno) => Err(errno.into()),
    }
}

/// Writes and syncs all of the content.
pub(super) fn fill(
    temp: &OwnedFd,
    content: &[u8],
    permissions: Option<Mode>,
    meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
) -> Result<(), FsError> {
    for piece in content.chunks(CHUNK_BYTES) {
        charge(meter, Charge::Bytes(u64::try_from(piece.len()).unwrap_or(u64::MAX)))?;
        let mut left = piece;
        while !left.is_empty() {
            let written = retry_on_intr(|| rustix::io::write(temp, left))?;
            // A file that takes nothing has no room.
            left = left.get(written..).filter(|_| written > 0).ok_or(FsError::NoSpace)?;
        }
    }
    if let Some(permissions) = permissions {
        rustix::fs::fchmod(temp, permissions)?;
    }
    Ok(rustix::fs::fsync(temp)?)
}

/// Gives the temporary file its name.
pub(super) fn put(
    dir: &OwnedFd,
    job: &Write<'_>,
    name: &str,
    state: &mut State,
) -> Result<(), FsError> {
    give(dir, job.temp.as_str(), dir, name, job.existing).map_err(|errno| {
        let error = match errno {
            // A file system without NOREPLACE.
            Errno::INVAL => FsError::Unsupported,
            errno => errno.into(),
        };
        if matches!(error, FsError::Io(_)) {
            // A remote or failing disk may have done it and lost the answer.
            state.effect = Effect::Unknown;
        }
        error
    })
}

/// Gives what has a name another, in one step.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
pub(super) fn give(
    from: &OwnedFd,
    name: &str,
    to: &OwnedFd,
    new: &str,
    existing: Existing,
) -> Result<(), Errno> {
    let flags = match existing {
        Existing::Replace => RenameFlags::empty(),
        Existing::Refuse => RenameFlags::NOREPLACE,
    };
    rustix::fs::renameat_with(from, name, to, new, flags)
}

/// Gives what has a name another, in one step. One that is not to replace anything can't be given
/// so here.
#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub(super) fn give(
    from: &OwnedFd,
    name: &str,
    to: &OwnedFd,
    new: &str,
    existing: Existing,
) -> Result<(), Errno> {
    match existing {
        Existing::Replace => rustix::fs::renameat(from, name, to, new),
        Existing::Refuse => Err(Errno::INVAL),
    }
}
