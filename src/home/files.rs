//! Files that are read or made whole.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use syscap_audit::disk;

use crate::error::{Error, at};

/// Reads a small regular file; anything else of that name is an error, not a wait.
pub(crate) fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    const BYTES_MAX: u64 = 64 << 10;
    let mut bytes = Vec::new();
    regular(path)?.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a regular file to read, without waiting for the other end of a pipe.
pub(crate) fn regular(path: &Path) -> io::Result<fs::File> {
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Writes a file that must not exist, for its owner only; file and name are durable.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    disk::write_new(path, bytes).map_err(at(path))
}
