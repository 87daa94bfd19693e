//! The survey of a folder in which a program is about to run, and its changes since.
//!
//! A program reads and writes without asking for each file. So what it is told is the label of all
//! that lies there, and what it leaves changed is given the label of all that it may have read.

use std::{collections::HashMap, os::fd::OwnedFd};

use rustix::fs::{Dir, Mode, fchmod, fstat};
use rustix::time::{ClockId, clock_gettime};
use syscap_format::Label;

use super::base::Base;
use super::error::FsError;
use super::gate::{Changed, Ident, Node};
use super::homes::is_mark;
use super::label;
use super::location::Location;
use super::walk::{DIRECTORY, READ};

/// Most names in a folder and all below it for a program to run in it.
pub const SURVEY_MAX: usize = 200_000;
/// How long a file must have been as it is for its time to tell of every later change.
const SETTLED_S: i64 = 2;

/// Hears of each thing: the folder that it is in, its name there, what it is.
type Each<'a> = &'a mut dyn FnMut(&OwnedFd, &[u8], Node) -> Result<(), FsError>;

/// The entries of a folder.
#[derive(Debug)]
pub struct Survey {
    label: Label,
    files: HashMap<Ident, Seen>,
    began_s: i64,
}

/// The new and changed entries of a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grown {
    /// Files.
    pub files: u64,
    /// Their bytes, all of them.
    pub bytes: u64,
    /// Their mark: the given label, joined with those of all entries there now.
    pub label: Label,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    changed: Changed,
    /// Names that it has elsewhere, as far as is known.
    elsewhere: u64,
}

impl Survey {
    /// The label of all of it together.
    pub const fn label(&self) -> Label {
        self.label
    }

    /// True if the file has the time that it had.
    fn is_same(&self, node: &Node) -> bool {
        self.files.get(&node.ident).is_some_and(|seen| seen.changed == node.changed)
    }

    /// True if the file may have changed since.
    fn is_changed(&self, node: &Node) -> bool {
        !self.is_same(node) || !node.changed.is_before(self.began_s.saturating_sub(SETTLED_S))
    }
}

/// The treatment of entries that can't be looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// All of it is seen, or none of it counts.
    Whole,
    /// Every reachable entry is looked at, and the first fault is reported at the end: a program
    /// that caused it must not keep other entries from being marked.
    AsFar,
}

impl How {
    /// Decides if it continues after an error, the first of which is kept.
    fn goes_on(self, first: &mut Result<(), FsError>, error: FsError) -> Result<(), FsError> {
        if self == Self::Whole {
            return Err(error);
        }
        if first.is_ok() {
            *first = Err(error);
        }
        Ok(())
    }

    /// A name that no tool would enter, and that is looked into all the same.
    fn enters(self, path: &[u8], name: &[u8]) -> Option<Vec<u8>> {
        (self == Self::AsFar).then(|| [path, b"/", name].concat())
    }
}

/// The kind of a name.
enum Below {
    Folder,
    Else,
}

impl Base {
    /// Opens a folder for a program to run in, by a handle that names it only, and says what lies
    /// there.
    ///
    /// # Errors
    /// Any of a walk; of all that lies below: [`FsError::Home`] for a home,
    /// [`FsError::OtherDevice`] for another mount, [`FsError::ManyLinks`] for a file that has a
    /// name outside, which would be written there too; [`FsError::TooLarge`] for more than
    /// [`SURVEY_MAX`] names, [`FsError::NameTooLong`] for a path of more than 4 KiB.
    pub fn survey(&self, at: &Location) -> Result<(OwnedFd, Survey), FsError> {
        let began_s = clock_gettime(ClockId::Realtime).tv_sec;
        let mut survey = Survey { label: Label::PUBLIC, files: HashMap::new(), began_s };
        let handle = self.name_directory(at.as_path())?;
        self.each_below(at, How::Whole, &mut |dir, name, node| {
            if node.is_directory() {
                survey.label = survey.label.join(label::WORST);
                return Ok(());
            }
            let seen = Seen { changed: node.changed, elsewhere: node.links };
            let seen = survey.files.entry(node.ident).or_insert(seen);
            seen.elsewhere = seen.elsewhere.saturating_sub(1);
            let kept = match self.walk(dir, name, READ) {
                Ok(file) => label::kept(file)?,
                // What it is, a program that may change its mode can find out.
                Err(FsError::Denied) => label::WORST,
                // Removed since its name was read: the program will not find it either.
                Err(FsError::NotFound) => Label::PUBLIC,
                Err(error) => return Err(error),
            };
            survey.label = survey.label.join(kept);
            Ok(())
        })?;
        if survey.files.values().any(|seen| seen.elsewhere > 0) {
            return Err(FsError::ManyLinks);
        }
        Ok((handle, survey))
    }

    /// Joins a label into that of each file that is new there or may have changed since the
    /// survey, with those that are kept there now, and says how many have.
    ///
    /// # Errors
    /// Any of a walk; [`FsError::Unsupported`] where the file system keeps no labels;
    /// [`FsError::TooLarge`] as [`Base::survey`]. Some may be marked then.
    pub fn mark(&self, at: &Location, survey: &Survey, label: Label) -> Result<Grown, FsError> {
        let mut grown = Grown::default();
        // What others wrote there meanwhile has its label, and the program may have read it.
        let mut label = label;
        let read = self.each_below(at, How::AsFar, &mut |dir, name, node| {
            if let (true, Ok(file)) = (node.is_file(), self.walk(dir, name, READ)) {
                label = label.join(label::kept(file)?);
            }
            Ok(())
        });
        grown.label = label;
        let marked = self.each_below(at, How::AsFar, &mut |dir, name, node| {
            if node.is_directory() || !survey.is_changed(&node) {
                return Ok(());
            }
            if !survey.is_same(&node) {
                grown.files = grown.files.saturating_add(1);
                grown.bytes = grown.bytes.saturating_add(node.size_bytes);
            }
            if label == Label::PUBLIC {
                return Ok(());
            }
            match self.walk(dir, name, READ) {
                Ok(file) => mark(&file, label),
                // Nobody reads it as it is, and who makes it readable has changed it.
                Err(FsError::Denied | FsError::NotFound) => Ok(()),
                Err(error) => Err(error),
            }
        });
        read.and(marked).map(|()| grown)
    }

    /// Tells of each regular file below a folder, and of each folder that can't be read. No link
    /// is followed.
    fn each_below(&self, at: &Location, how: How, on: Each<'_>) -> Result<(), FsError> {
        let top = self.open_directory(at.as_path())?;
        let mut seen = 0_usize;
        let mut first = Ok(());
        // By their paths: open, they could be more than a process may have.
        let mut folders = vec![b".".to_vec()];
        while let Some(path) = folders.pop() {
            let folder = match self.walk(&top, &path, DIRECTORY) {
                Ok(folder) => folder,
                Err(error) => {
                    how.goes_on(&mut first, error)?;
                    continue;
                }
            };
            for entry in Dir::read_from(&folder)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if matches!(name, b"." | b"..") {
                    continue;
                }
                seen = seen.saturating_add(1);
                if seen > SURVEY_MAX {
                    how.goes_on(&mut first, FsError::TooLarge)?;
                }
                match self.entry(&folder, name, on) {
                    Ok(Below::Folder) => folders.push([path.as_slice(), b"/", name].concat()),
                    Ok(Below::Else) => {}
                    Err(error) => {
                        how.goes_on(&mut first, error)?;
                        folders.extend(how.enters(&path, name));
                    }
                }
            }
        }
        first
    }

    fn entry(&self, folder: &OwnedFd, name: &[u8], on: Each<'_>) -> Result<Below, FsError> {
        let node = match self.name(folder, name) {
            Ok(named) => named.node,
            // It went since its name was read.
            Err(FsError::NotFound) => return Ok(Below::Else),
            Err(error) => return Err(error),
        };
        node.expect_device(self.device())?;
        if node.is_file() {
            on(folder, name, node)?;
        } else if node.is_directory() {
            match self.look_into(folder, name) {
                Ok(()) => return Ok(Below::Folder),
                Err(FsError::Denied) => on(folder, name, node)?,
                Err(error) => return Err(error),
            }
        }
        Ok(Below::Else)
    }

    /// Checks that a folder is no home, and can be read.
    fn look_into(&self, folder: &OwnedFd, name: &[u8]) -> Result<(), FsError> {
        if std::str::from_utf8(name).is_ok_and(is_mark) {
            return Err(FsError::Home);
        }
        self.expect_no_home(self.walk(folder, name, DIRECTORY)?)
    }
}

/// Joins a label into that of a file.
fn mark(file: &OwnedFd, label: Label) -> Result<(), FsError> {
    let joined = label::kept(file)?.join(label);
    match label::replace(file, joined) {
        // Its mode lets nobody write, its owner neither.
        Err(FsError::Denied) => {
            let mode = Mode::from_raw_mode(fstat(file)?.st_mode);
            fchmod(file, mode | Mode::WUSR)?;
            let marked = label::replace(file, joined);
            fchmod(file, mode)?;
            marked
        }
        marked => marked,
    }
}
