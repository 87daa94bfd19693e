//! The file backend: the tools' only way to files beneath a directory.

use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use syscap_format::{Enforcement, Label, Manifest, ObligationKind};

use super::append::Append;
use super::base::{Agents, Base, FolderMode, is_above};
use super::beside::Began;
use super::change::{Metadata, Removal, Rename, Renamed};
use super::error::FsError;
use super::list::Listing;
use super::location::Location;
use super::read::OpenFile;
use super::survey::{Grown, Survey};
use super::temp::{Discarded, TempName};
use super::turn::Turn;
use super::write::{Charge, Effect, Parents, Refused, State, Write, WriteFailure, Written};

mod sealed {
    /// Only this crate opens: what a tool says of how its scope was enforced rests on it.
    #[expect(unnameable_types, reason = "sealed: nobody else is to name it")]
    pub trait Sealed {}
    impl Sealed for super::Base {}
}

/// Opens files beneath one directory, whatever the system has for it. An opened entry lies beneath
/// the directory and on its device, and is no link, no home and nothing but a regular file or a
/// folder. This holds for the opened entry itself, not for its name.
///
/// [`Base`] says of each what it does and how it fails.
pub trait Opener: sealed::Sealed + fmt::Debug + Send + Sync {
    /// How it keeps to the directory: what goes on record.
    fn enforcement(&self) -> Enforcement;

    /// The directory itself.
    fn directory(&self) -> BorrowedFd<'_>;

    /// Settles whose the agents' folders are, once. Until then they are taken for its own.
    fn settle(&self, agents: Agents);

    /// Opens a file to read.
    ///
    /// # Errors
    /// As [`Base::open_file`].
    fn open_file(&self, at: &Location, max_size_bytes: u64) -> Result<OpenFile, FsError>;

    /// Lists a folder.
    ///
    /// # Errors
    /// As [`Base::list`].
    fn list(&self, at: &Location, limit: usize) -> Result<Listing, FsError>;

    /// Waits for the turn to change a name.
    ///
    /// # Errors
    /// As [`Base::turn`].
    fn turn(
        &self,
        at: &Location,
        parents: Parents,
        content: &[u8],
        wait: Duration,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<Turn, WriteFailure>;

    /// Waits for the turns to change two names.
    ///
    /// # Errors
    /// As [`Base::turns`].
    fn turns(
        &self,
        from: &Location,
        to: &Location,
        parents: Parents,
        wait: Duration,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<[Turn; 2], WriteFailure>;

    /// Creates or replaces a file.
    ///
    /// # Errors
    /// As [`Base::write`].
    fn write(
        &self,
        turn: Turn,
        job: &Write<'_>,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<Written, WriteFailure>;

    /// Removes what a write left that a crash broke off.
    ///
    /// # Errors
    /// As [`Base::discard`].
    fn discard(&self, at: &Location, temp: &TempName) -> Result<Discarded, FsError>;

    /// Says what stands there.
    ///
    /// # Errors
    /// As [`Base::metadata`].
    fn metadata(&self, at: &Location) -> Result<Metadata, FsError>;

    /// Removes a name.
    ///
    /// # Errors
    /// As [`Base::remove`].
    fn remove(
        &self,
        turn: Turn,
        what: Removal,
        expected: Option<[u8; 32]>,
    ) -> Result<(), WriteFailure>;

    /// Adds to a file.
    ///
    /// # Errors
    /// As [`Base::append`].
    fn append(
        &self,
        turn: &Turn,
        job: &Append<'_>,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<(), WriteFailure>;

    /// Gives a file another name.
    ///
    /// # Errors
    /// As [`Base::rename`].
    fn rename(&self, turns: [Turn; 2], job: &Rename) -> Result<Renamed, WriteFailure>;

    /// Follows links.
    ///
    /// # Errors
    /// As [`Base::resolve`].
    fn resolve(
        &self,
        written: &Location,
        may_follow: &dyn Fn(&Location) -> bool,
    ) -> Result<Location, FsError>;

    /// Makes missing folders.
    ///
    /// # Errors
    /// As [`Base::make_folders`].
    fn make_folders(&self, at: &Location, mode: FolderMode) -> Result<u32, FsError>;

    /// Opens a folder for a program.
    ///
    /// # Errors
    /// As [`Base::survey`].
    fn survey(&self, at: &Location) -> Result<(OwnedFd, Survey), FsError>;

    /// Marks what changed.
    ///
    /// # Errors
    /// As [`Base::mark`].
    fn mark(&self, at: &Location, survey: &Survey, label: Label) -> Result<Grown, FsError>;

    /// A program begins to run in a folder, and may have read what that label says. Until what is
    /// given back is dropped it has the label of what tools put there, and of programs beside it.
    fn begin(&self, at: &Location, label: Label) -> Began;

    /// Looks whether an agent could be let into a folder.
    ///
    /// # Errors
    /// As [`Base::visit`].
    fn visit(&self, at: &Location) -> Result<(), FsError>;
}

/// The backends that may open a directory's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Openers {
    /// `openat2`, and where the system lacks it `cap-std`.
    #[default]
    Strongest,
    /// `openat2` or nothing.
    Openat2,
    /// `cap-std`, also where there is `openat2`.
    CapStd,
}

impl Openers {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Strongest, Self::Openat2, Self::CapStd];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strongest => "strongest",
            Self::Openat2 => "openat2",
            Self::CapStd => "cap_std",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|openers| openers.name() == name)
    }
}

/// Opens a directory, by the strongest opener that the system has.
///
/// # Errors
/// What the system says.
pub fn open(path: &Path) -> Result<Arc<dyn Opener>, FsError> {
    open_by(Openers::Strongest, path)
}

/// Opens a directory by one of these openers. Which it is stays: only here is another tried, and
/// only where there is none of the first.
///
/// # Errors
/// [`FsError::Unsupported`] where it must be `openat2`, and that is missing or filtered; else what
/// the system says.
pub fn open_by(openers: Openers, path: &Path) -> Result<Arc<dyn Opener>, FsError> {
    let base = match openers {
        Openers::Strongest => match Base::open(path) {
            Err(FsError::Unsupported) => Base::open_by_cap_std(path),
            opened => opened,
        },
        Openers::Openat2 => Base::open(path),
        Openers::CapStd => Base::open_by_cap_std(path),
    };
    Ok(Arc::new(base?))
}

impl dyn Opener + '_ {
    /// True if this directory is `other` or one of its ancestors, by inode and not by name.
    ///
    /// Only the names `other` was opened by are walked up: a bind mount of one of its parents
    /// elsewhere is not found.
    ///
    /// # Errors
    /// [`FsError::TooLarge`] for a directory more than 4096 deep, else what the system says.
    pub fn contains(&self, other: &dyn Opener) -> Result<bool, FsError> {
        is_above(self.directory(), other.directory())
    }

    /// The manifest of a tool that opens all its files here, with what follows of that. It is the
    /// same for as long as the opener is.
    pub(crate) fn promised(&self, manifest: Manifest) -> Manifest {
        match self.enforcement() {
            Enforcement::Openat2 => manifest.honours(ObligationKind::Openat2),
            _ => manifest,
        }
    }
}

impl Opener for Base {
    fn enforcement(&self) -> Enforcement {
        self.enforcement()
    }

    fn directory(&self) -> BorrowedFd<'_> {
        self.handle()
    }

    fn open_file(&self, at: &Location, max_size_bytes: u64) -> Result<OpenFile, FsError> {
        self.open_file(&self.lies(at), max_size_bytes)
    }

    fn list(&self, at: &Location, limit: usize) -> Result<Listing, FsError> {
        self.list(&self.lies(at), limit)
    }

    fn turn(
        &self,
        at: &Location,
        parents: Parents,
        content: &[u8],
        wait: Duration,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<Turn, WriteFailure> {
        let at = self.changes(at).map_err(not_begun)?;
        self.turn(&at, parents, content, wait, meter)
    }

    fn turns(
        &self,
        from: &Location,
        to: &Location,
        parents: Parents,
        wait: Duration,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<[Turn; 2], WriteFailure> {
        let from = self.changes(from).map_err(not_begun)?;
        let to = self.changes(to).map_err(not_begun)?;
        self.turns(&from, &to, parents, wait, meter)
    }

    fn write(
        &self,
        turn: Turn,
        job: &Write<'_>,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<Written, WriteFailure> {
        self.write(turn, job, meter)
    }

    fn discard(&self, at: &Location, temp: &TempName) -> Result<Discarded, FsError> {
        self.discard(&self.lies(at), temp)
    }

    fn metadata(&self, at: &Location) -> Result<Metadata, FsError> {
        self.metadata(&self.lies(at))
    }

    fn remove(
        &self,
        turn: Turn,
        what: Removal,
        expected: Option<[u8; 32]>,
    ) -> Result<(), WriteFailure> {
        self.remove(turn, what, expected)
    }

    fn append(
        &self,
        turn: &Turn,
        job: &Append<'_>,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<(), WriteFailure> {
        self.append(turn, job, meter)
    }

    fn rename(&self, turns: [Turn; 2], job: &Rename) -> Result<Renamed, WriteFailure> {
        self.rename(turns, job)
    }

    fn resolve(
        &self,
        written: &Location,
        may_follow: &dyn Fn(&Location) -> bool,
    ) -> Result<Location, FsError> {
        self.resolve(written, may_follow)
    }

    fn make_folders(&self, at: &Location, mode: FolderMode) -> Result<u32, FsError> {
        match self.changes(at) {
            Ok(at) => self.make_folders(&at, mode),
            // Those that are there need not be made.
            Err(error) => self.visit(&self.lies(at)).map(|()| 0).map_err(|_| error),
        }
    }

    fn survey(&self, at: &Location) -> Result<(OwnedFd, Survey), FsError> {
        self.survey(&self.lies(at))
    }

    fn mark(&self, at: &Location, survey: &Survey, label: Label) -> Result<Grown, FsError> {
        self.mark(&*self.changes(at)?, survey, label)
    }

    fn begin(&self, at: &Location, label: Label) -> Began {
        self.running.begin(&self.lies(at), label)
    }

    fn settle(&self, agents: Agents) {
        self.settle(agents);
    }

    fn visit(&self, at: &Location) -> Result<(), FsError> {
        self.visit(&self.lies(at))
    }
}

fn not_begun(error: FsError) -> WriteFailure {
    State { effect: Effect::NotDone, folders: 0 }.failed(error)
}
