//! A home and its keys, which no agent and no program that is started for one may reach.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use super::BoundaryError;
use super::place::{Ident, Place, ident};
use crate::Home;

/// The protected paths: the home, with keys, log and socket, and the keys where they lie elsewhere.
#[derive(Debug)]
pub struct Guarded {
    folders: Vec<(GuardedFolder, Place)>,
    /// Each file of theirs, which may have a second name elsewhere. They are held open: the number of
    /// one that is removed would be that of a new file, which is nobody's.
    files: Vec<(OwnedFd, Ident)>,
    /// The mount points.
    mounts: Vec<PathBuf>,
}

impl Guarded {
    /// A home in that folder.
    ///
    /// # Errors
    /// [`BoundaryError::File`] where it can't be looked at, [`BoundaryError::Linked`].
    pub fn of(home: &Path) -> Result<Self, BoundaryError> {
        let keys = Home::at(home).keys();
        let own = Place::open(home).map_err(BoundaryError::file(home))?;
        let mut folders = vec![(GuardedFolder::Home, own)];
        match Place::open(&keys) {
            Ok(keys) => folders.push((GuardedFolder::Keys, keys)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(BoundaryError::file(&keys)(error)),
        }
        let mut files = Vec::new();
        for folder in [home, &keys] {
            let (found, linked) = files_of(folder).map_err(BoundaryError::file(folder))?;
            if linked {
                // By that an agent would reach it, wherever it lies.
                return Err(BoundaryError::Linked(folder.to_path_buf()));
            }
            files.extend(found);
        }
        let table = Path::new("/proc/self/mountinfo");
        let mounts = fs::read(table).map_err(BoundaryError::file(table))?;
        Ok(Self { folders, files, mounts: mounts_of(&mounts) })
    }

    /// The guarded folders, the home first.
    pub fn folders(&self) -> impl Iterator<Item = &Place> {
        self.folders.iter().map(|(_, place)| place)
    }

    /// Refuses a path by which any of it would be opened.
    ///
    /// # Errors
    /// [`BoundaryError::Guarded`] where something is; [`BoundaryError::File`].
    pub fn expect_apart(&self, place: &Place) -> Result<(), BoundaryError> {
        self.expect_apart_itself(place)?;
        if !place.is_folder() {
            return Ok(());
        }
        // A mount below is opened with it, and no way leads up from there to the home.
        let real = place.real().map_err(BoundaryError::file(place.shown()))?;
        for mount in self.mounts.iter().filter(|mount| mount.starts_with(&real) && **mount != real)
        {
            // A mount that can't be reached by its name is not reached by the program either.
            if let Ok(mounted) = Place::open(mount) {
                self.expect_apart_itself(&mounted.named(place.shown()))?;
            }
        }
        Ok(())
    }

    fn expect_apart_itself(&self, place: &Place) -> Result<(), BoundaryError> {
        let guarded = |how| Err(BoundaryError::Guarded { path: place.shown().to_path_buf(), how });
        for (what, folder) in &self.folders {
            if place.contains(folder) {
                return guarded(Reaches::Holds(*what));
            }
            if folder.contains(place) {
                return guarded(Reaches::LiesIn(*what));
            }
        }
        if place.ident().is_some_and(|own| self.files.iter().any(|(_, file)| *file == own)) {
            return guarded(Reaches::IsFile);
        }
        Ok(())
    }
}

/// A guarded folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardedFolder {
    /// The home, with log, keys and socket.
    Home,
    /// Its keys, where they lie elsewhere.
    Keys,
}

/// How a path reaches what is guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaches {
    /// It is, or holds, that folder.
    Holds(GuardedFolder),
    /// It lies in that folder.
    LiesIn(GuardedFolder),
    /// It is another name of a file there.
    IsFile,
}

impl std::fmt::Display for Reaches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |folder: &GuardedFolder| match folder {
            GuardedFolder::Home => "the home",
            GuardedFolder::Keys => "the home's keys",
        };
        match self {
            Self::Holds(folder) => write!(f, "holds {}", name(folder)),
            Self::LiesIn(folder) => write!(f, "lies in {}", name(folder)),
            Self::IsFile => write!(f, "is a file of the home's"),
        }
    }
}

/// The files of a folder, without those below; and whether one of them has a second name.
fn files_of(folder: &Path) -> io::Result<(Vec<(OwnedFd, Ident)>, bool)> {
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
                let ident = ident(&handle)?.0;
                files.push((handle, ident));
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
    fn new_file_is_no_removed_one_of_the_home() {
        let folder = tempfile::tempdir().unwrap();
        let (home, other) = (folder.path().join("home"), folder.path().join("other"));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&other).unwrap();
        let names = ["home.db-shm", "home.db-wal"].map(|name| home.join(name));
        for name in &names {
            fs::write(name, b"").unwrap();
        }
        let guarded = Guarded::of(&home).unwrap();
        for name in &names {
            fs::remove_file(name).unwrap();
        }
        for number in 0..64 {
            let new = other.join(number.to_string());
            fs::create_dir(&new).unwrap();
            guarded.expect_apart(&Place::open(&new).unwrap()).unwrap();
        }
    }

    #[test]
    fn places_of_mounts_are_read_with_what_stands_for_spaces() {
        let table =
            b"36 35 98:0 / /mnt/a\\040b\\134c rw - ext3 /dev/x rw\n1 2 0:1 /x /y rw - t s\n\n";
        assert_eq!(mounts_of(table), [PathBuf::from("/mnt/a b\\c"), PathBuf::from("/y")]);
    }
}
