//! Looking at, removing and renaming what is there.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use super::base::Base;
use super::error::FsError;
use super::gate::{Kind, Node};
use super::homes::{expect_no_key, is_mark, may_be_key};
use super::label;
use super::location::Location;
use super::temp::give;
use super::turn::Turn;
use super::walk::{Named, READ};
use super::write::{Effect, Existing, State, WriteFailure};

/// A file system entry, as it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Its kind. Entries that can't be opened are not told apart.
    pub kind: Kind,
    /// The size of a regular file, else 0.
    pub size_bytes: u64,
    /// When the content of a file, or the names in a folder, last changed, by the file system's
    /// clock; before 1970 is 0, and so is what can't be opened.
    pub modified_ms: u64,
    /// True if any user may write to it, by its permission bits.
    pub writable: bool,
}

/// The kinds of entry that may be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Removal {
    /// A name that is no folder's. A link is removed itself, and of a file with more links this
    /// one.
    File,
    /// A folder with nothing in it.
    EmptyFolder,
}

/// The conditions on a file that is renamed.
#[derive(Clone, Copy, Debug)]
pub struct Rename {
    /// The treatment of an existing file.
    pub existing: Existing,
    /// The SHA-256 that the content must have of the file, and of the one that is replaced.
    pub expected: [Option<[u8; 32]>; 2],
}

/// The result of a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Renamed {
    /// The size of the file.
    pub size_bytes: u64,
    /// How many folders were made.
    pub folders: u32,
    /// True if a file of the new name was there before.
    pub replaced: bool,
}

impl Base {
    /// Says what stands at a place, which is not opened. It passes the gates of a listing.
    ///
    /// # Errors
    /// Any of a walk. A name that could only be a home's is [`FsError::Home`].
    pub fn metadata(&self, at: &Location) -> Result<Metadata, FsError> {
        let (node, kind) = match at.split() {
            Err(_) => {
                let node = Node::of(self.name_directory(at.as_path())?)?;
                (node, Kind::Directory)
            }
            Ok((_, name)) if is_mark(name) => return Err(FsError::Home),
            Ok((parent, name)) => {
                let node = self.name(self.name_directory(parent)?, name.as_bytes())?.node;
                if node.is_directory() {
                    // It is judged as whoever would list it is.
                    drop(self.name_directory(at.as_path())?);
                }
                (node, node.kind(self.device()))
            }
        };
        let is_open = matches!(kind, Kind::File | Kind::Directory);
        Ok(Metadata {
            kind,
            size_bytes: if kind == Kind::File { node.size_bytes } else { 0 },
            modified_ms: if is_open { node.modified_ms } else { 0 },
            writable: is_open && node.is_writable(),
        })
    }

    /// Removes a name, durably.
    ///
    /// A file must have a permission to write: a rename or a removal needs none on the file
    /// itself, so a mark as read-only is seen here or never. Between the look and the removal
    /// somebody may put another thing under that name: then that is removed, as it stands there.
    ///
    /// # Errors
    /// [`WriteFailure`] says why, and what was left.
    pub fn remove(
        &self,
        turn: Turn,
        what: Removal,
        expected: Option<[u8; 32]>,
    ) -> Result<(), WriteFailure> {
        let mut state = turn.state();
        let removed = self.take_away(turn, what, expected, &mut state.effect);
        removed.map_err(|error| state.failed(error))
    }

    fn take_away(
        &self,
        turn: Turn,
        what: Removal,
        expected: Option<[u8; 32]>,
        effect: &mut Effect,
    ) -> Result<(), FsError> {
        let (dir, name) = (&turn.dir, &*turn.name);
        let node = self.name(dir, name.as_bytes())?.node;
        let flags = match (what, node.is_directory()) {
            (Removal::File, true) => return Err(FsError::IsDirectory),
            (Removal::EmptyFolder, false) => return Err(FsError::NotDirectory),
            (Removal::File, false) => AtFlags::empty(),
            (Removal::EmptyFolder, true) => {
                // It is judged by a handle of its own, as one that is listed.
                drop(self.open_directory(turn.at.as_path())?);
                AtFlags::REMOVEDIR
            }
        };
        if node.is_file() {
            self.expect_own(dir, name, name, &node)?;
            self.expect_digest(dir, name, expected)?;
        }
        unlinkat(dir, name, flags).map_err(|errno| lost(errno, effect))?;
        *effect = Effect::Unknown;
        Ok(rustix::fs::fsync(turn.over())?)
    }

    /// Gives the file of the first turn the name of the second, durably; see [`Rename`].
    ///
    /// Both folders are held open and both names judged: the file as one that is read, its new name
    /// as one that is written. Afterwards the entry of the new name is checked: if it is not the
    /// file that was judged, somebody exchanged it, and the error says so.
    ///
    /// # Errors
    /// [`WriteFailure`] says why, and what was left.
    pub fn rename(&self, turns: [Turn; 2], job: &Rename) -> Result<Renamed, WriteFailure> {
        let mut state = turns[1].state();
        self.give_name(turns, job, &mut state).map_err(|error| state.failed(error))
    }

    fn give_name(
        &self,
        [from, to]: [Turn; 2],
        job: &Rename,
        state: &mut State,
    ) -> Result<Renamed, FsError> {
        let ((source, old_name), (target, new_name)) =
            ((&from.dir, &*from.name), (&to.dir, &*to.name));
        let named = self.expect_moved(source, old_name, new_name)?;
        let node = named.node;
        let held = self.hold(source, old_name, named)?;
        let old = self.old_file(target, new_name, job.existing)?;
        let [of_file, of_old] = job.expected;
        self.expect_digest(source, old_name, of_file)?;
        self.expect_digest(target, new_name, of_old)?;
        if self.running.is_near(&to.at) {
            let kept = self.walk(source, old_name.as_bytes(), READ).and_then(label::kept);
            self.running.reaches(&to.at, kept.unwrap_or(label::WORST));
        }
        give(source, old_name, target, new_name, job.existing)
            .map_err(|errno| lost(errno, &mut state.effect))?;
        state.effect = Effect::Unknown;
        if Node::at(target, new_name)?.is_none_or(|now| now.ident != node.ident) {
            return Err(FsError::Changed);
        }
        drop(held);
        for folder in [to.over(), from.over()] {
            rustix::fs::fsync(folder)?;
        }
        let (size_bytes, folders) = (node.size_bytes, state.folders);
        Ok(Renamed { size_bytes, folders, replaced: old.is_some() })
    }

    /// That a file may be given another name.
    pub(super) fn expect_moved(
        &self,
        dir: &OwnedFd,
        name: &str,
        new_name: &str,
    ) -> Result<Named, FsError> {
        let named = self.name(dir, name.as_bytes())?;
        named.node.expect_file(self.device())?;
        self.expect_own(dir, name, name, &named.node)?;
        self.expect_own(dir, name, new_name, &named.node)?;
        Ok(named)
    }

    /// Holds a file that was named: a number that is free is given to the next file at once. If no
    /// handle of it is held, it is opened to read.
    fn hold(&self, dir: &OwnedFd, name: &str, named: Named) -> Result<OwnedFd, FsError> {
        let Named { node, held } = named;
        let held = held.map_or_else(|| self.walk(dir, name.as_bytes(), READ), Ok)?;
        if Node::of(&held)?.ident == node.ident { Ok(held) } else { Err(FsError::Changed) }
    }

    /// That a regular file may be taken away, and would be no key under a name.
    fn expect_own(
        &self,
        dir: &OwnedFd,
        name: &str,
        named: &str,
        node: &Node,
    ) -> Result<(), FsError> {
        if !node.is_writable() {
            return Err(FsError::Denied);
        }
        if may_be_key(named) {
            expect_no_key(named, self.walk(dir, name.as_bytes(), READ)?)?;
        }
        Ok(())
    }
}

/// A remote or failing disk may have done it and lost the answer.
fn lost(errno: Errno, effect: &mut Effect) -> FsError {
    let error = match errno {
        // A file system without NOREPLACE.
        Errno::INVAL => FsError::Unsupported,
        errno => errno.into(),
    };
    if matches!(error, FsError::Io(_)) {
        *effect = Effect::Unknown;
    }
    error
}
