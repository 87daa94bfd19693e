//! The words of a server that no terminal shows: `server.log` in the home, and one older.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// The file's name, and that of the one before.
const FILE: &str = "server.log";
const OLDER: &str = "server.log.1";
/// With so many bytes another one begins.
const BYTES_MAX: u64 = 1 << 20;

/// Opens it at its end, for whoever serves the home.
pub(crate) fn open(home: &Path) -> std::io::Result<File> {
    let path = home.join(FILE);
    match fs::symlink_metadata(&path) {
        Ok(found) if found.len() >= BYTES_MAX => fs::rename(&path, home.join(OLDER))?,
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    OpenOptions::new().create(true).append(true).mode(0o600).custom_flags(flags).open(path)
}

/// True if what is written on standard error goes into a file that has no room for more.
pub(crate) fn is_full() -> bool {
    let here = rustix::fs::fstat(rustix::stdio::stderr());
    here.is_ok_and(|file| u64::try_from(file.st_size).is_ok_and(|bytes| bytes >= BYTES_MAX))
}
