//! The label of what a session had read when it wrote a file, kept with the file.
//!
//! It is an extended attribute of the file, set before the file has its name: so it goes where the
//! file goes, a rename keeps it, and who replaces the file by other means replaces the label too.

use std::os::fd::AsFd;

use rustix::io::Errno;
use syscap_format::field::Field as _;
use syscap_format::{Confidentiality, Decoder, Encoder, Integrity, Label, Profile};

use super::error::FsError;

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
const NAME: &str = "user.syscap.label";
/// Most bytes of a label: a number of 64 bits and its head.
const BYTES_MAX: usize = 9;

/// The label of a file whose label can't be read: another program wrote it.
pub(super) const WORST: Label = Label::new(Integrity::Untrusted, Confidentiality::Sensitive);

/// Keeps a label with a new file. A trusted and public file needs none.
///
/// # Errors
/// [`FsError::Unsupported`] where the file system keeps none: then nothing that has one is written
/// to it.
pub(super) fn keep(fd: impl AsFd, label: Label) -> Result<(), FsError> {
    if label == Label::PUBLIC { Ok(()) } else { set(fd, label, Setting::New) }
}

/// Keeps a label in place of another.
///
/// # Errors
/// As [`keep`]; [`FsError::Denied`] where the file's mode lets nobody write it.
pub(super) fn replace(fd: impl AsFd, label: Label) -> Result<(), FsError> {
    set(fd, label, Setting::Replaced)
}

/// The label that is kept with an open file.
pub(super) fn kept(fd: impl AsFd) -> Result<Label, FsError> {
    let mut bytes = Vec::with_capacity(BYTES_MAX);
    match attribute::get(fd, &mut bytes) {
        Ok(()) => {}
        Err(errno) if attribute::is_none(errno) => return Ok(Label::PUBLIC),
        Err(Errno::RANGE) => return Ok(WORST),
        Err(errno) => return Err(errno.into()),
    }
    let mut decoder = Decoder::new(&bytes, Profile::DATA);
    let label = Label::take(&mut decoder).ok().filter(|_| decoder.finish().is_ok());
    Ok(label.unwrap_or(WORST))
}

fn set(fd: impl AsFd, label: Label, how: Setting) -> Result<(), FsError> {
    let mut encoder = Encoder::new();
    label.put(&mut encoder);
    match attribute::set(fd, &encoder.into_bytes(), how) {
        Ok(()) => Ok(()),
        Err(Errno::NOTSUP) => Err(FsError::Unsupported),
        Err(errno) => Err(errno.into()),
    }
}

/// Decides if there may be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    New,
    Replaced,
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
mod attribute {
    use super::{AsFd, Errno, NAME, Setting};
    use rustix::buffer::spare_capacity;
    use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};

    #[cfg(target_os = "linux")]
    const NONE: Errno = Errno::NODATA;
    #[cfg(not(target_os = "linux"))]
    const NONE: Errno = Errno::NOATTR;

    pub(super) fn get(fd: impl AsFd, bytes: &mut Vec<u8>) -> Result<(), Errno> {
        fgetxattr(fd, NAME, spare_capacity(bytes)).map(|_| ())
    }

    pub(super) fn set(fd: impl AsFd, bytes: &[u8], how: Setting) -> Result<(), Errno> {
        let flags = match how {
            Setting::New => XattrFlags::CREATE,
            Setting::Replaced => XattrFlags::empty(),
        };
        fsetxattr(fd, NAME, bytes, flags)
    }

    /// The file has none, or the file system can keep none.
    pub(super) fn is_none(errno: Errno) -> bool {
        errno == NONE || errno == Errno::NOTSUP
    }
}

/// A system without attributes writes no file that has a label.
#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
mod attribute {
    use super::{AsFd, Errno, Setting};

    pub(super) fn get(_: impl AsFd, _: &mut Vec<u8>) -> Result<(), Errno> {
        Err(Errno::NOTSUP)
    }

    pub(super) fn set(_: impl AsFd, _: &[u8], _: Setting) -> Result<(), Errno> {
        Err(Errno::NOTSUP)
    }

    pub(super) fn is_none(errno: Errno) -> bool {
        errno == Errno::NOTSUP
    }
}
