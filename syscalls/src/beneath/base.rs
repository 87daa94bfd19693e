//! The directory that everything is beneath.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::error::FsError;
use super::gate::{DIRECTORY, Ident, NAMED, Node, walk};
use super::location::Location;

/// How many directories up [`Base::contains`] looks. Deeper is refused, not guessed.
const ANCESTORS_MAX: u32 = 4096;

/// The directory that everything is beneath, as an open handle.
#[derive(Debug)]
pub struct Base {
    fd: OwnedFd,
    ident: Ident,
}

/// Who may enter a folder that is made; the process's umask takes away from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FolderMode {
    /// The owner alone: 0700.
    Private,
    /// Others may look: 0755.
    Shared,
}

impl FolderMode {
    pub(super) fn bits(self) -> Mode {
        match self {
            Self::Private => Mode::RWXU,
            Self::Shared => Mode::from_raw_mode(0o755),
        }
    }
}

impl Base {
    /// Opens a directory as the base. Links in `path` are followed: it is the operator's.
    ///
    /// # Errors
    /// [`FsError::Unsupported`] if `openat2` is missing or filtered, so a base that exists works.
    pub fn open(path: &Path) -> Result<Self, FsError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        let ident = Node::of(&fd)?.ident;
        walk(&fd, b".", NAMED)?;
        Ok(Self { fd, ident })
    }

    /// Whether this directory is `other` or one of its ancestors, by inode and not by name.
    ///
    /// Only the names `other` was opened by are walked up: a bind mount of one of its parents
    /// elsewhere is not found.
    ///
    /// # Errors
    /// [`FsError::TooLarge`] for a directory more than 4096 deep, else what the system says.
    pub fn contains(&self, other: &Self) -> Result<bool, FsError> {
        let mut at = other
            .fd
            .try_clone()
            .map_err(|error| FsError::from(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
        let mut ident = other.ident;
        for _ in 0..ANCESTORS_MAX {
            if ident == self.ident {
                return Ok(true);
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            at = rustix::fs::openat(&at, "..", flags, Mode::empty())?;
            let above = Node::of(&at)?.ident;
            // The root is its own parent.
            if above == ident {
                return Ok(false);
            }
            ident = above;
        }
        Err(FsError::TooLarge)
    }

    /// Makes the folders of `at` that are missing, durably, and says how many.
    ///
    /// # Errors
    /// Any; folders made before the error stay.
    pub fn make_folders(&self, at: &Location, mode: FolderMode) -> Result<u32, FsError> {
        let mut made = 0;
        self.make_path(at.as_path(), mode, &mut |step| {
            made += u32::from(step == Step::Made);
            Ok(())
        })?;
        Ok(made)
    }

    /// Opens the directory at a path, making what is missing. `on` hears each step and may stop.
    pub(super) fn make_path(
        &self,
        path: &str,
        mode: FolderMode,
        on: &mut dyn FnMut(Step) -> Result<(), FsError>,
    ) -> Result<OwnedFd, FsError> {
        // Nearly always all of it is there.
        match self.open_directory(path) {
            Err(FsError::NotFound) => {}
            opened => return opened,
        }
        let mut dir = self.open_directory(".")?;
        for name in path.split('/') {
            dir = match self.open_directory_at(&dir, name) {
                Err(FsError::NotFound) => {
                    on(Step::Missing)?;
                    match rustix::fs::mkdirat(&dir, name, mode.bits()) {
                        Ok(()) => {
                            on(Step::Made)?;
                            rustix::fs::fsync(&dir)?;
                        }
                        // Someone else made it, or something else with that name.
                        Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno.into()),
                    }
                    self.open_directory_at(&dir, name)?
                }
                opened => opened?,
            };
        }
        Ok(dir)
    }

    /// Opens the directory at a path beneath the base, on the base's device.
    pub(super) fn open_directory(&self, path: &str) -> Result<OwnedFd, FsError> {
        self.open_directory_at(&self.fd, path)
    }

    /// The same from a directory that was opened beneath the base.
    fn open_directory_at(&self, dir: impl AsFd, path: &str) -> Result<OwnedFd, FsError> {
        let fd = walk(dir, path.as_bytes(), DIRECTORY)?;
        Node::of(&fd)?.expect_device(self.device())?;
        Ok(fd)
    }

    /// The handle that walks begin at.
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The device all of the base must be on.
    pub(super) fn device(&self) -> u64 {
        self.ident.device
    }
}

/// A step of making folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A folder is missing and about to be made.
    Missing,
    /// It was made.
    Made,
}
