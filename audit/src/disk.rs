//! Files and folders that are still there after a power cut.
//!
//! A file's content is durable when the file was synced, and its name when the folder was that
//! holds it. Each part of a new home is made by this module.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use syscap_kernel::StoreError;

/// A home's database, where the home itself keeps its log: a folder that has one is a home.
pub const DATABASE_FILE: &str = "home.db";

/// Checks that a folder has a home's database.
///
/// # Errors
/// [`StoreError::Missing`] where it has none; [`StoreError::Io`] where the system does not say, as
/// without the permission to look.
pub fn expect_database(home: &Path) -> Result<(), StoreError> {
    match fs::metadata(home.join(DATABASE_FILE)) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(StoreError::Missing),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Err(StoreError::Missing),
            _ => Err(StoreError::Io(error.raw_os_error().unwrap_or(0))),
        },
    }
}

/// Makes a folder for its owner only, and those on the way to it that are missing. When it
/// returns their names are durable; that of a folder which was there too, unless its parent can't
/// be read.
///
/// # Errors
/// What the operating system says.
pub fn make_folder(path: &Path) -> io::Result<()> {
    // An empty path is what comes before a relative one: the current folder.
    let named = path.ancestors().filter(|part| !part.as_os_str().is_empty());
    let missing: Vec<&Path> = named.take_while(|part| !part.is_dir()).collect();
    if missing.is_empty() {
        // It may have been made a moment ago; who made it could read what it lies in.
        return match sync_parent(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced,
        };
    }
    for part in missing.into_iter().rev() {
        match DirBuilder::new().mode(0o700).create(part) {
            Ok(()) => sync_parent(part)?,
            // Another process made it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && part.is_dir() => {
                sync_parent(part)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes a file that must not exist, for its owner only. It is whole as soon as it has its name,
/// and of two who make it at once one gets [`io::ErrorKind::AlreadyExists`]. When it returns, file
/// and name are durable; what was written of a file that can't be written whole is removed.
///
/// # Errors
/// What the operating system says.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, |part| match renameat_with(CWD, part, CWD, path, RenameFlags::NOREPLACE) {
        // A file system that can't.
        Err(Errno::INVAL) => fs::hard_link(part, path).and_then(|()| fs::remove_file(part)),
        named => Ok(named?),
    })
}

/// Writes a file in the place of one that may be there, as [`write_new`]. Of two concurrent writers
/// one is the last.
///
/// # Errors
/// What the operating system says.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, |part| fs::rename(part, path))
}

/// Writes a file under a name that nobody else uses, and gives it its own.
fn put(path: &Path, bytes: &[u8], name: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut part = OsString::from(".");
    part.push(path.file_name().ok_or(io::ErrorKind::IsADirectory)?);
    part.push(format!(".{}-{}.part", process::id(), NEXT.fetch_add(1, Relaxed)));
    let part = path.with_file_name(part);
    let mut file = private().create_new(true).open(&part)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if let Err(error) = written.and_then(|()| name(&part)) {
        // Half a file is of no use. That it could not be written is what there is to say, whether
        // or not it could be removed.
        drop(fs::remove_file(&part));
        return Err(error);
    }
    sync_parent(path)
}

/// Removes from a folder what writers left that were killed before their files had names: the bytes
/// may be a key's. What a process that lives is writing stays.
///
/// # Errors
/// What the operating system says.
pub fn sweep(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(writer) = name.to_str().and_then(writer_of) else { continue };
        let lives = |writer| match test_kill_process(writer) {
            // A number that is another user's is one that lives.
            Ok(()) | Err(Errno::PERM) => true,
            Err(_) => false,
        };
        if entry.file_type()?.is_file() && !Pid::from_raw(writer).is_some_and(lives) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The process that writes a file under such a name: `.NAME.PID-N.part`.
fn writer_of(name: &str) -> Option<i32> {
    let (_, numbers) = name.strip_prefix('.')?.strip_suffix(".part")?.rsplit_once('.')?;
    let (writer, n) = numbers.split_once('-')?;
    n.parse::<u64>().ok()?;
    writer.parse().ok().filter(|writer| *writer > 0)
}

/// Makes the names in a folder durable.
///
/// # Errors
/// What the operating system says.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Makes a name durable, by the folder that holds it.
///
/// # Errors
/// What the operating system says.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => sync_folder(parent),
        None => sync_folder(Path::new(".")),
    }
}

/// How many bytes its user may still write on the disk of a folder.
///
/// # Errors
/// What the operating system says.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Opens a regular file to read, without waiting for the other end of a pipe.
///
/// # Errors
/// What the operating system says; [`io::ErrorKind::InvalidInput`] for what is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// To write a file of its owner's only.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    // A link of that name would lead elsewhere, and a pipe would wait.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    options.write(true).mode(0o600).custom_flags(flags);
    options
}

/// An error of the operating system in a store's terms.
pub(crate) fn from_io(error: &io::Error) -> StoreError {
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::StorageFull, _) => StoreError::Full,
        (_, code) => StoreError::Io(code.unwrap_or(0)),
    }
}

pub(crate) fn from_errno(error: rustix::io::Errno) -> StoreError {
    from_io(&io::Error::from(error))
}
