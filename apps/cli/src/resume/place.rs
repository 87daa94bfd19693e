//! A file to be written anew, in a folder that is held open.
//!
//! An agent may write where a resume lies, and can put a link there, or in the place of a folder on
//! the way: whoever follows it writes where the link's maker wants. So no link is followed at all,
//! and what is read, written and renamed is named in the folder that was opened.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock};

/// A file's folder, open, and its name there.
pub(super) struct Place {
    folder: OwnedFd,
    name: OsString,
}

/// The contents read, and their file.
pub(super) struct Found {
    pub(super) bytes: Vec<u8>,
    mode: u32,
}

impl Place {
    /// Opens the folder of a file, without following a link.
    pub(super) fn of(file: &Path) -> io::Result<Self> {
        let name = file.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_owned();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |at: &OwnedFd, name: &OsStr| rustix::fs::openat(at, name, flags, Mode::empty());
        let start = if file.is_absolute() { "/" } else { "." };
        let mut folder = rustix::fs::openat(CWD, start, flags, Mode::empty())?;
        for part in file.parent().into_iter().flat_map(Path::components) {
            let part = match part {
                Component::Normal(part) => part,
                Component::ParentDir => OsStr::new(".."),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
            };
            folder = match open(&folder, part) {
                Ok(inner) => inner,
                Err(_) if is_link(&folder, part) => return Err(linked(file)),
                Err(error) => return Err(error.into()),
            };
        }
        if is_link(&folder, &name) {
            return Err(linked(file));
        }
        Ok(Self { folder, name })
    }

    /// Reads the file: a regular one, and one byte more of it than it may have.
    pub(super) fn read(&self, most: usize) -> io::Result<Found> {
        // Not a pipe, which might never end, nor a device.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty())?;
        let file = File::from(file);
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1))
            .read_to_end(&mut bytes)?;
        Ok(Found { bytes, mode: meta.mode() & 0o777 })
    }

    /// Puts a new content in the place of the one that was read, whole or not at all.
    pub(super) fn replace(&self, old: &Found, text: &[u8]) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(&self.folder, ".", flags, Mode::empty())?;
        // Two of us at once would both find what they have read. It is held until the end.
        flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
        let mut part = self.name.clone();
        part.push(format!(".{}.part", std::process::id()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let new = rustix::fs::openat(&self.folder, &part, flags, Mode::RUSR | Mode::WUSR)?;
        let mut new = File::from(new);
        let mut whole = || {
            new.write_all(text)?;
            rustix::fs::fchmod(&new, Mode::from_raw_mode(old.mode))?;
            new.sync_all()?;
            // What somebody else wrote meanwhile is not lost.
            if self.read(old.bytes.len())?.bytes != old.bytes {
                return Err(io::Error::other("it was changed meanwhile, and was left alone"));
            }
            rustix::fs::renameat(&self.folder, &part, &self.folder, &self.name)?;
            Ok(())
        };
        if let Err(error) = whole() {
            rustix::fs::unlinkat(&self.folder, &part, AtFlags::empty())?;
            return Err(error);
        }
        Ok(rustix::fs::fsync(folder)?)
    }
}

fn is_link(folder: &OwnedFd, name: &OsStr) -> bool {
    let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| {
        rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::Symlink
    })
}

/// Says where it leads, for whoever means that place.
fn linked(file: &Path) -> io::Error {
    let leads = file.canonicalize().map_or_else(
        |_| "which leads nowhere".to_owned(),
        |place| format!("which leads to {}: name that, if you mean it", place.display()),
    );
    io::Error::new(io::ErrorKind::InvalidInput, format!("there is a link in its path, {leads}"))
}
