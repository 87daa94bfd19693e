//! The opened paths, and the protected ones: compared by open handles, and not by names.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, readlinkat, statat};
use syscap::{Home, kernel::StoreError};

use crate::exit::Failure;

/// Deepest folder that is taken.
const DEPTH_MAX: usize = 4_096;

/// Which file something is: device and inode.
type Ident = (u64, u64);

/// A file or folder that is open, with the folders that it lies in.
#[derive(Debug)]
pub(super) struct Place {
    /// As it was named.
    shown: PathBuf,
    pub(super) handle: OwnedFd,
    /// Itself, and each folder above.
    lineage: Vec<Ident>,
    pub(super) is_folder: bool,
}

fn ident(handle: impl AsFd) -> io::Result<(Ident, FileType)> {
    let stat = fstat(handle)?;
    Ok(((stat.st_dev, stat.st_ino), FileType::from_raw_mode(stat.st_mode)))
}

impl Place {
    /// Opens what a path leads to, links followed.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        Self::at(path).map_err(Failure::file(path))
    }

    fn at(path: &Path) -> io::Result<Self> {
        let handle = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let (own, kind) = ident(&handle)?;
        let mut lineage = vec![own];
        let is_folder = kind == FileType::Directory;
        if is_folder {
            climb(handle.try_clone()?, &mut lineage)?;
        } else {
            let real = real(&handle)?;
            let gone = || io::Error::from(io::ErrorKind::NotFound);
            let (folder, name) = real.parent().zip(real.file_name()).ok_or_else(gone)?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = openat(CWD, folder, flags, Mode::empty())?;
            let there = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            // What has this name meanwhile is not what is open.
            if (there.st_dev, there.st_ino) != own {
                return Err(gone());
            }
            lineage.push(ident(&folder)?.0);
            climb(folder, &mut lineage)?;
        }
        Ok(Self { shown: path.to_path_buf(), handle, lineage, is_folder })
    }

    fn ident(&self) -> Option<Ident> {
        self.lineage.first().copied()
    }

    /// True if it is the other, or contains it.
    pub(super) fn contains(&self, other: &Self) -> bool {
        self.ident().is_some_and(|own| other.lineage.contains(&own))
    }

    /// The same once more.
    pub(super) fn again(&self) -> Result<OwnedFd, Failure> {
        self.handle.try_clone().map_err(Failure::file(&self.shown))
    }

    /// Its present location, by its name.
    pub(super) fn real(&self) -> Result<PathBuf, Failure> {
        real(&self.handle).map_err(Failure::file(&self.shown))
    }
}

fn real(handle: &OwnedFd) -> io::Result<PathBuf> {
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let name = readlinkat(CWD, link, Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(name.as_bytes())))
}

/// Adds each folder above one, up to the root.
fn climb(mut folder: OwnedFd, lineage: &mut Vec<Ident>) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    while lineage.len() < DEPTH_MAX {
        let above = openat(&folder, "..", flags, Mode::empty())?;
        let found = ident(&above)?.0;
        if lineage.last() == Some(&found) {
            return Ok(());
        }
        lineage.push(found);
        folder = above;
    }
    Err(io::Error::from(io::ErrorKind::InvalidFilename))
}

/// The protected paths: the home, with keys, log and socket, and the keys where they lie elsewhere.
#[derive(Debug)]
pub(super) struct Guarded {
    folders: Vec<(&'static str, Place)>,
    /// Each file of theirs, which may have a second name elsewhere.
    files: Vec<Ident>,
    /// The mount points.
    mounts: Vec<PathBuf>,
}

impl Guarded {
    pub(super) fn of(home: &Path) -> Result<Self, Failure> {
        let keys = Home::at(home).keys();
        let own = Place::at(home).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::home(home)(StoreError::Missing.into()),
            _ => Failure::file(home)(error),
        })?;
        let mut folders = vec![("the home", own)];
        match Place::at(&keys) {
            Ok(keys) => folders.push(("the home's keys", keys)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::file(&keys)(error)),
        }
        let mut files = Vec::new();
        for folder in [home, &keys] {
            let (found, linked) = files_of(folder).map_err(Failure::file(folder))?;
            if linked {
                // By that an agent would reach it, wherever it lies.
                let advice = "holds a file that has a second name (a hard link), which may lie \
                    where the agent works: remove that name (find -links +1)";
                let what = folder.display().to_string();
                return Err(Failure::Usage { what, advice: advice.to_owned() });
            }
            files.extend(found);
        }
        let table = Path::new("/proc/self/mountinfo");
        let mounts = fs::read(table).map_err(Failure::file(table))?;
        Ok(Self { folders, files, mounts: mounts_of(&mounts) })
    }

    /// That nothing of it is opened by this.
    pub(super) fn expect_apart(&self, place: &Place) -> Result<(), Failure> {
        self.expect_apart_itself(place)?;
        if !place.is_folder {
            return Ok(());
        }
        // What is mounted below is opened with it, and no way leads up from there to the home.
        let real = place.real()?;
        for mount in self.mounts.iter().filter(|mount| mount.starts_with(&real) && **mount != real)
        {
            // What can't be reached by its name, such as another user's, is not by the program.
            if let Ok(mounted) = Place::at(mount) {
                self.expect_apart_itself(&Place { shown: place.shown.clone(), ..mounted })?;
            }
        }
        Ok(())
    }

    fn expect_apart_itself(&self, place: &Place) -> Result<(), Failure> {
        let usage =
            |advice: String| Failure::Usage { what: place.shown.display().to_string(), advice };
        for (what, guarded) in &self.folders {
            if place.contains(guarded) {
                let advice = format!(
                    "holds {what}, which no agent may reach: name a folder that doesn't, \
                     by --workspace DIR"
                );
                return Err(usage(advice));
            }
            if guarded.contains(place) {
                let advice = format!(
                    "lies in {what}, which no agent may reach: name a folder elsewhere, \
                     by --workspace DIR"
                );
                return Err(usage(advice));
            }
        }
        if place.ident().is_some_and(|own| self.files.contains(&own)) {
            return Err(usage("is a file of the home's, which no agent may reach".to_owned()));
        }
        Ok(())
    }
}

/// The files of a folder, without those below; and whether one of them has a second name.
fn files_of(folder: &Path) -> io::Result<(Vec<Ident>, bool)> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), false)),
        Err(error) => return Err(error),
    };
    let (mut files, mut linked) = (Vec::new(), false);
    for entry in entries {
        match openat(CWD, entry?.path(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(handle) => {
                let stat = fstat(&handle)?;
                let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
                linked |= is_file && stat.st_nlink > 1;
                files.push(ident(&handle)?.0);
            }
            // A log's side files come and go.
            Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok((files, linked))
}

/// The places of a table of mounts (`proc_pid_mountinfo(5)`), whose fifth field has spaces and
/// the like as octal numbers.
fn mounts_of(table: &[u8]) -> Vec<PathBuf> {
    let lines = table.split(|byte| *byte == b'\n');
    let places = lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    places.map(|place| PathBuf::from(std::ffi::OsStr::from_bytes(&plain(place)))).collect()
}

fn plain(mut field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    while let Some((first, rest)) = field.split_first() {
        let octal = rest.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let octal = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (first, octal) {
            (b'\\', Some(byte)) => {
                plain.push(byte);
                field = rest.get(3..).unwrap_or_default();
            }
            _ => {
                plain.push(*first);
                field = rest;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_mounts_are_read_with_what_stands_for_spaces() {
        let table =
            b"36 35 98:0 / /mnt/a\\040b\\134c rw - ext3 /dev/x rw\n1 2 0:1 /x /y rw - t s\n\n";
        assert_eq!(mounts_of(table), [PathBuf::from("/mnt/a b\\c"), PathBuf::from("/y")]);
    }
}
