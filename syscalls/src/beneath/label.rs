//! The label of what a session had read when it wrote a file, kept with the file.
//!
//! It is an extended attribute of the file, set before the file has its name: so it goes where the
//! file goes, a rename keeps it, and who replaces the file by other means replaces the label too.

use std::os::fd::AsFd;

use rustix::buffer::spare_capacity;
use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
use rustix::io::Errno;
use syscap_format::cbor::{Decoder, Encoder, Profile};
use syscap_format::field::Field as _;
use syscap_format::label::{Confidentiality, Integrity, Label};

use super::error::FsError;

const NAME: &str = "user.syscap.label";
/// Most bytes of a label: a number of 64 bits and its head.
const BYTES_MAX: usize = 9;

/// What is taken for a label that can't be read: somebody else wrote it.
pub(super) const WORST: Label = Label::new(Integrity::Untrusted, Confidentiality::Sensitive);

/// Keeps a label with a new file. What is trusted and public needs none.
///
/// # Errors
/// [`FsError::Unsupported`] where the file system keeps none: then nothing that has one is written
/// to it.
pub(super) fn keep(fd: impl AsFd, label: Label) -> Result<(), FsError> {
    if label == Label::PUBLIC { Ok(()) } else { set(fd, label, XattrFlags::CREATE) }
}

/// Keeps a label in place of another.
///
/// # Errors
/// As [`keep`]; [`FsError::Denied`] where the file's mode lets nobody write it.
pub(super) fn replace(fd: impl AsFd, label: Label) -> Result<(), FsError> {
    set(fd, label, XattrFlags::empty())
}

fn set(fd: impl AsFd, label: Label, how: XattrFlags) -> Result<(), FsError> {
    let mut encoder = Encoder::new();
    label.put(&mut encoder);
    match fsetxattr(fd, NAME, &encoder.into_bytes(), how) {
        Ok(()) => Ok(()),
        Err(Errno::NOTSUP) => Err(FsError::Unsupported),
        Err(errno) => Err(errno.into()),
    }
}

/// The label that is kept with an open file.
pub(super) fn kept(fd: impl AsFd) -> Result<Label, FsError> {
    let mut bytes = Vec::with_capacity(BYTES_MAX);
    match fgetxattr(fd, NAME, spare_capacity(&mut bytes)) {
        Ok(_) => {}
        // It has none, or the file system can keep none.
        Err(Errno::NODATA | Errno::NOTSUP) => return Ok(Label::PUBLIC),
        Err(Errno::RANGE) => return Ok(WORST),
        Err(errno) => return Err(errno.into()),
    }
    let mut decoder = Decoder::new(&bytes, Profile::DATA);
    let label = Label::take(&mut decoder).ok().filter(|_| decoder.finish().is_ok());
    Ok(label.unwrap_or(WORST))
}
