//! Files that are read or made whole.

use std::io::{self, Read as _};
use std::path::Path;

use syscap_audit::disk;

use crate::error::{Error, at};

/// Reads a small regular file; anything else of that name is an error, not a wait.
pub(crate) fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    const BYTES_MAX: u64 = 64 << 10;
    let mut bytes = Vec::new();
    disk::open_regular(path)?.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file that must not exist, for its owner only; file and name are durable.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    disk::write_new(path, bytes).map_err(at(path))
}
