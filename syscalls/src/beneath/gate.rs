//! The checks of an entry once it is named or opened.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;
use rustix::path::Arg;

use super::error::FsError;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file with one link, on the base's device.
    File,
    /// A directory on the base's device.
    Directory,
    /// A symbolic link.
    Link,
    /// Anything that can't be read here: a FIFO, a socket, a device, a file with more than one
    /// link, another mount.
    Other,
}

/// The identity of a directory, among those held open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ident {
    pub(super) device: u64,
    inode: u64,
}

/// When something last changed, by the file system's clock: what is in a directory, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    seconds: i64,
    nanoseconds: u64,
}

impl Changed {
    /// True if it was before that second.
    pub(super) const fn is_before(self, second: i64) -> bool {
        self.seconds < second
    }
}

/// The `fstat` of an open handle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) ident: Ident,
    pub(super) changed: Changed,
    pub(super) size_bytes: u64,
    /// When its content last changed, in milliseconds since 1970.
    pub(super) modified_ms: u64,
    /// The nine permission bits. The bits that change who runs a file are never carried over.
    pub(super) permissions: Mode,
    /// How many names it has.
    pub(super) links: u64,
    file_type: FileType,
}

impl Node {
    pub(super) fn of(fd: impl AsFd) -> Result<Self, FsError> {
        Ok(Self::from(&rustix::fs::fstat(fd)?))
    }

    /// The entry at a path, if there is one. It is not opened; a link at the end is itself.
    pub(super) fn at(dir: impl AsFd, path: impl Arg) -> Result<Option<Self>, FsError> {
        match rustix::fs::statat(dir, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Self::from(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        self.file_type == FileType::Directory
    }

    pub(super) fn is_link(self) -> bool {
        self.file_type == FileType::Symlink
    }

    pub(super) fn is_file(&self) -> bool {
        self.file_type == FileType::RegularFile
    }

    /// True if any user may write to it.
    pub(super) fn is_writable(&self) -> bool {
        self.permissions.intersects(Mode::WUSR | Mode::WGRP | Mode::WOTH)
    }

    /// Checks that this may be read or replaced: regular, of one link, on the base's device.
    pub(super) fn expect_file(&self, device: u64) -> Result<(), FsError> {
        match self.file_type {
            FileType::Directory => return Err(FsError::IsDirectory),
            FileType::Symlink => return Err(FsError::Link),
            FileType::RegularFile => {}
            _ => return Err(FsError::NotRegular),
        }
        self.expect_device(device)?;
        // None has a file that was replaced since the walk: it was inside when it was opened.
        if self.links > 1 { Err(FsError::ManyLinks) } else { Ok(()) }
    }

    /// Checks that this is on the base's device. `NO_XDEV` sees mounts; this sees subvolumes too.
    pub(super) fn expect_device(&self, device: u64) -> Result<(), FsError> {
        if self.ident.device == device { Ok(()) } else { Err(FsError::OtherDevice) }
    }

    /// Its kind in a listing: entries that can't be opened are not told apart.
    pub(super) fn kind(&self, device: u64) -> Kind {
        match self.file_type {
            FileType::Symlink => Kind::Link,
            FileType::Directory if self.ident.device == device => Kind::Directory,
            _ if self.expect_file(device).is_ok() => Kind::File,
            _ => Kind::Other,
        }
    }
}

impl From<&Stat> for Node {
    fn from(stat: &Stat) -> Self {
        let modified_s = u64::try_from(stat.st_mtime).unwrap_or(0);
        Self {
            ident: Ident { device: wide(stat.st_dev), inode: wide(stat.st_ino) },
            changed: Changed { seconds: stat.st_ctime, nanoseconds: wide(stat.st_ctime_nsec) },
            size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified_ms: modified_s
                .saturating_mul(1_000)
                .saturating_add(wide(stat.st_mtime_nsec) / 1_000_000),
            permissions: Mode::from_raw_mode(stat.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO),
            file_type: FileType::from_raw_mode(stat.st_mode),
            links: wide(stat.st_nlink),
        }
    }
}

/// A number that has another width on each system; one that is below zero is like no other.
fn wide<T: TryInto<u64>>(number: T) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}
