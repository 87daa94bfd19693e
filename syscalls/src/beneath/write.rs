//! Creating or replacing a file.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, unlinkat};
use syscap_format::Label;

use super::base::{Base, FolderMode, Step};
use super::error::FsError;
use super::gate::Node;
use super::homes::{expect_no_key, is_key, may_be_key};
use super::label;
use super::read::OpenFile;
use super::temp::{TempName, create, fill, put};
use super::turn::Turn;
use super::walk::READ;

/// A write.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// All of its new content.
    pub content: &'a [u8],
    /// The treatment of an existing file.
    pub existing: Existing,
    /// The SHA-256 that the content of the file must have that is replaced, up to the last moment
    /// before it is; `None` where any may be replaced, or none is there.
    pub expected: Option<[u8; 32]>,
    /// The file that the content was made from, held open since: it must still be the one of that
    /// name, and as long.
    pub made_from: Option<&'a OpenFile>,
    /// The name of the temporary file, used by no other write.
    pub temp: &'a TempName,
    /// The label that is stored with the file, and read again by
    /// [`OpenFile::label`](super::OpenFile::label).
    pub label: Label,
}

/// The treatment of an existing file by a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Existing {
    /// It is replaced.
    Replace,
    /// The write is refused.
    Refuse,
}

/// The treatment of missing folders by a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parents {
    /// They are an error.
    Require,
    /// They are made. New folders stay, even if the write then fails.
    Create(FolderMode),
}

/// The use that a write is about to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Charge {
    /// One folder.
    Folder,
    /// One file that isn't there yet.
    File,
    /// This many bytes, at most [`CHUNK_BYTES`](super::CHUNK_BYTES).
    Bytes(u64),
}

/// The meter's no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("refused by the meter")]
pub struct Refused;

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Written {
    /// The size of the file.
    pub size_bytes: u64,
    /// How many folders were made.
    pub folders: u32,
    /// True if a file was there before.
    pub replaced: bool,
}

/// A write that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{error}")]
pub struct WriteFailure {
    /// Why.
    pub error: FsError,
    /// The effect that it left.
    pub effect: Effect,
    /// How many folders were made, and stay.
    pub folders: u32,
}

/// The effect of a failed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing.
    NotDone,
    /// The file is as it was, but folders were made or the temporary file could not be removed.
    Partly,
    /// The file may have its old or its new content, whole, and a power cut may change which.
    Unknown,
}

impl Base {
    /// Creates or replaces a file: whole and durable, or not at all.
    ///
    /// The content goes to a temporary file in the same directory, which is synced and then
    /// renamed. An existing file is never opened for writing and never truncated, so a hard link or
    /// a file swapped in at the last moment keeps its content: at most its name here is replaced. A
    /// file that is there must pass the gates of a read and have a permission to write; its nine
    /// permission bits are kept, its owner and attributes are not. What an agent's tools keep beside
    /// its workspace is its owner's only.
    ///
    /// `meter` is asked before each folder, before a new file, and before each piece of the
    /// content; its no ends the write. The turn is over with the rename, before the folder is
    /// synced.
    ///
    /// # Errors
    /// [`WriteFailure`] says why and what was left.
    pub fn write(
        &self,
        turn: Turn,
        job: &Write<'_>,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<Written, WriteFailure> {
        let mut state = turn.state();
        self.replace(turn, job, meter, &mut state).map_err(|error| state.failed(error))
    }

    fn replace(
        &self,
        turn: Turn,
        job: &Write<'_>,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
        state: &mut State,
    ) -> Result<Written, FsError> {
        let (dir, name) = (&turn.dir, &*turn.name);
        let size_bytes = u64::try_from(job.content.len()).unwrap_or(u64::MAX);
        if is_key(name, job.content) {
            return Err(FsError::Home);
        }
        let old = self.old_file(dir, name, job.existing)?;
        self.expect(dir, name, job)?;
        if old.is_none() {
            charge(meter, Charge::File)?;
        }
        // Before there is anything to read.
        self.running.reaches(&turn.at, job.label);
        let permissions = match turn.at.is_kept() {
            true => Some(Mode::RUSR | Mode::WUSR),
            false => old.as_ref().map(|old| old.permissions),
        };
        let temp = create(dir, job.temp, permissions)?;
        let filled = label::keep(&temp, job.label);
        let filled = filled.and_then(|()| fill(&temp, job.content, permissions, meter));
        let filled = filled.and_then(|()| self.expect(dir, name, job));
        if let Err(error) = filled.and_then(|()| put(dir, job, name, state)) {
            let removed = unlinkat(dir, job.temp.as_str(), AtFlags::empty());
            if state.effect == Effect::NotDone && removed.is_err() {
                state.effect = Effect::Partly;
            }
            return Err(error);
        }
        state.effect = Effect::Unknown;
        rustix::fs::fsync(turn.over())?;
        Ok(Written { size_bytes, folders: state.folders, replaced: old.is_some() })
    }

    pub(super) fn open_parent(
        &self,
        parent: &str,
        parents: Parents,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
        state: &mut State,
    ) -> Result<OwnedFd, FsError> {
        match parents {
            Parents::Require => self.open_directory(parent),
            Parents::Create(mode) => self.make_path(parent, mode, &mut |step| {
                match step {
                    Step::Missing => charge(meter, Charge::Folder)?,
                    Step::Made => {
                        state.folders += 1;
                        state.effect = Effect::Partly;
                    }
                }
                Ok(())
            }),
        }
    }

    /// The file is the one that the content was made from, and as it was. A change by another
    /// program between this and the following rename is not seen: no system call compares and
    /// replaces at once.
    fn expect(&self, dir: &OwnedFd, name: &str, job: &Write<'_>) -> Result<(), FsError> {
        if let Some(file) = job.made_from {
            let was = file.node()?;
            let is_it = |now: Node| now.ident == was.ident && now.size_bytes == file.size_bytes();
            if !Node::at(dir, name)?.is_some_and(is_it) {
                return Err(FsError::Changed);
            }
        }
        self.expect_digest(dir, name, job.expected)
    }

    /// The file has the content that is expected.
    pub(super) fn expect_digest(
        &self,
        dir: &OwnedFd,
        name: &str,
        expected: Option<[u8; 32]>,
    ) -> Result<(), FsError> {
        let Some(expected) = expected else { return Ok(()) };
        let found = match self.walk(dir, name.as_bytes(), READ) {
            Err(FsError::NotFound) => return Err(FsError::Changed),
            fd => self.digest(name, fd?)?,
        };
        if found == expected { Ok(()) } else { Err(FsError::Changed) }
    }

    /// The file that would be replaced, if there is one and it may be.
    pub(super) fn old_file(
        &self,
        dir: &OwnedFd,
        name: &str,
        existing: Existing,
    ) -> Result<Option<Node>, FsError> {
        let named = match self.name(dir, name.as_bytes()) {
            Err(FsError::NotFound) => return Ok(None),
            named => named?,
        };
        if existing == Existing::Refuse {
            return Err(FsError::Exists);
        }
        let node = named.node;
        node.expect_file(self.device())?;
        if may_be_key(name) {
            expect_no_key(name, self.walk(dir, name.as_bytes(), READ)?)?;
        }
        // A rename needs no right on the file, so a file marked read-only is seen here or never.
        if !node.is_writable() {
            return Err(FsError::Denied);
        }
        Ok(Some(node))
    }
}

/// How far a change got, for its failure.
pub(super) struct State {
    pub(super) effect: Effect,
    pub(super) folders: u32,
}

impl State {
    pub(super) fn failed(&self, error: FsError) -> WriteFailure {
        WriteFailure { error, effect: self.effect, folders: self.folders }
    }
}

pub(super) fn charge(
    meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    what: Charge,
) -> Result<(), FsError> {
    meter(what).map_err(|Refused| FsError::Refused)
}
