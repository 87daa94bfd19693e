//! The directory that everything is beneath.

use std::borrow::Cow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use syscap_format::Enforcement;

use super::beside::Beside;
use super::error::FsError;
use super::gate::{Ident, Node};
use super::homes::{Homes, holds_key, is_mark};
use super::judged::Judged;
use super::location::Location;
use super::turn::Name;
use super::walk::{DIRECTORY, Named, PASSED, PATH, Walk};
use crate::turns::Turns;

/// How many directories up [`is_above`] looks. Deeper is refused, not guessed.
const ANCESTORS_MAX: u32 = 4096;

/// The directory that everything is beneath, as an open handle.
#[derive(Debug)]
pub struct Base {
    fd: OwnedFd,
    ident: Ident,
    walk: Walk,
    homes: Homes,
    pub(super) judged: Judged,
    /// The names that are changed at the moment.
    pub(super) turns: Arc<Turns<Name>>,
    /// The programs that run below it.
    pub(super) running: Arc<Beside>,
    agents: OnceLock<Agents>,
}

/// Whose the folder `agents` of a base is. Its names are the same to all: what differs is where
/// they lie.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Agents {
    /// This home's.
    Own,
    /// Another home's: this one's lie in a folder of that name beneath it.
    Of(Box<str>),
    /// Nobody's, since no claim can be made on it: it is only read.
    Nobodys,
}

/// The access to a new folder; the process's umask reduces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FolderMode {
    /// The owner alone: 0700.
    Private,
    /// Others may look: 0755.
    Shared,
}

impl FolderMode {
    pub(super) fn bits(self) -> Mode {
        match self {
            Self::Private => Mode::RWXU,
            Self::Shared => Mode::from_raw_mode(0o755),
        }
    }
}

impl Base {
    /// Opens a directory as the base, to reach what lies in it by `openat2`. Links in `path` are
    /// followed: it is the operator's.
    ///
    /// # Errors
    /// [`FsError::Unsupported`] if `openat2` is missing or filtered, so a base that exists works.
    pub fn open(path: &Path) -> Result<Self, FsError> {
        #[cfg(target_os = "linux")]
        return Self::over(path, |_| Ok(Walk::Openat2));
        #[cfg(not(target_os = "linux"))]
        return Self::open_by_cap_std(path).and(Err(FsError::Unsupported));
    }

    /// The same by `cap-std`, name by name, whatever the system has.
    ///
    /// # Errors
    /// What the system says.
    pub fn open_by_cap_std(path: &Path) -> Result<Self, FsError> {
        Self::over(path, |base| Walk::by_cap_std(base))
    }

    fn over(
        path: &Path,
        walk: impl FnOnce(&OwnedFd) -> Result<Walk, FsError>,
    ) -> Result<Self, FsError> {
        let flags = PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        let ident = Node::of(&fd)?.ident;
        let walk = walk(&fd)?;
        // It is tried out here, and never again.
        drop(walk.open(&fd, b".", PASSED)?);
        let (homes, judged) = (Homes::over(walk), Judged::default());
        let (turns, running) = (Arc::default(), Arc::default());
        Ok(Self { fd, ident, walk, homes, judged, turns, running, agents: OnceLock::new() })
    }

    /// Settles whose the agents' folders are, once: the base of no home is its own.
    pub(super) fn settle(&self, agents: Agents) {
        self.agents.get_or_init(|| agents);
    }

    /// Where a location lies.
    pub(super) fn lies<'a>(&self, at: &'a Location) -> Cow<'a, Location> {
        match self.agents.get() {
            Some(Agents::Of(home)) => at.of_home(home),
            _ => Cow::Borrowed(at),
        }
    }

    /// The same, to change something there.
    pub(super) fn changes<'a>(&self, at: &'a Location) -> Result<Cow<'a, Location>, FsError> {
        match self.agents.get() {
            Some(Agents::Nobodys) if at.is_agents() => Err(FsError::Denied),
            _ => Ok(self.lies(at)),
        }
    }

    /// How what lies in it is reached.
    pub const fn enforcement(&self) -> Enforcement {
        self.walk.enforcement()
    }

    /// Opens what lies at a path beneath a directory that was opened so.
    pub(super) fn walk(
        &self,
        dir: impl AsFd,
        path: &[u8],
        how: OFlags,
    ) -> Result<OwnedFd, FsError> {
        self.walk.open(dir, path, how)
    }

    /// The same without opening it.
    pub(super) fn name(&self, dir: impl AsFd, path: &[u8]) -> Result<Named, FsError> {
        self.walk.name(dir, path)
    }

    /// Makes the folders of `at` that are missing, durably, and says how many.
    ///
    /// # Errors
    /// Any; folders made before the error stay.
    pub fn make_folders(&self, at: &Location, mode: FolderMode) -> Result<u32, FsError> {
        let mut made = 0;
        self.make_path(at.as_path(), mode, &mut |step| {
            made += u32::from(step == Step::Made);
            Ok(())
        })?;
        Ok(made)
    }

    /// Walks to a directory, to see whether an agent could be let into it.
    ///
    /// # Errors
    /// Any of a walk; [`FsError::Home`] also where role keys lie in it: they are not opened, but
    /// whoever keeps them there did not mean it for agents.
    pub fn visit(&self, at: &Location) -> Result<(), FsError> {
        let dir = self.name_directory(at.as_path())?;
        if holds_key(self.walk, &dir, "")? { Err(FsError::Home) } else { Ok(()) }
    }

    /// Opens the directory at a path, making what is missing. `on` hears each step and may stop.
    pub(super) fn make_path(
        &self,
        path: &str,
        mode: FolderMode,
        on: &mut dyn FnMut(Step) -> Result<(), FsError>,
    ) -> Result<OwnedFd, FsError> {
        // Nearly always all of it is there.
        match self.open_directory(path) {
            Err(FsError::NotFound) => {}
            opened => return opened,
        }
        let mut dir = self.open_directory(".")?;
        for name in path.split('/') {
            dir = match self.open_directory_at(&dir, name, DIRECTORY) {
                Err(FsError::NotFound) => {
                    on(Step::Missing)?;
                    match rustix::fs::mkdirat(&dir, name, mode.bits()) {
                        Ok(()) => {
                            on(Step::Made)?;
                            rustix::fs::fsync(&dir)?;
                        }
                        // Someone else made it, or something else with that name.
                        Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno.into()),
                    }
                    self.open_directory_at(&dir, name, DIRECTORY)?
                }
                opened => opened?,
            };
        }
        Ok(dir)
    }

    /// Opens the directory at a path beneath the base, on the base's device.
    pub(super) fn open_directory(&self, path: &str) -> Result<OwnedFd, FsError> {
        self.walk_to(path, DIRECTORY)
    }

    /// Names the directory at a path beneath the base, on the base's device, to walk on from it.
    pub(super) fn name_directory(&self, path: &str) -> Result<OwnedFd, FsError> {
        self.walk_to(path, PASSED)
    }

    /// Neither the base nor a directory on the way nor the one at the end may be a home. If all of
    /// them are known to be none, one walk is enough; else it goes down name by name, and each
    /// directory is judged by its own handle.
    fn walk_to(&self, path: &str, how: OFlags) -> Result<OwnedFd, FsError> {
        if let Ok(fd) = self.walk(&self.fd, path.as_bytes(), how)
            && self.known(path).is_some()
        {
            Node::of(&fd)?.expect_device(self.device())?;
            return Ok(fd);
        }
        self.homes.expect_none(&self.fd, &Node::of(&self.fd)?)?;
        let Some((way, last)) = path.rsplit_once('/') else {
            return self.open_directory_at(&self.fd, path, how);
        };
        let mut names = way.split('/');
        let mut dir = self.open_directory_at(&self.fd, names.next().unwrap_or("."), PASSED)?;
        for name in names {
            dir = self.open_directory_at(&dir, name, PASSED)?;
        }
        self.open_directory_at(&dir, last, how)
    }

    /// The same by one name, from a directory that was opened beneath the base.
    fn open_directory_at(
        &self,
        dir: impl AsFd,
        name: &str,
        how: OFlags,
    ) -> Result<OwnedFd, FsError> {
        if is_mark(name) {
            return Err(FsError::Home);
        }
        let fd = self.walk(dir, name.as_bytes(), how)?;
        self.expect_no_home(&fd)?;
        Ok(fd)
    }

    /// Checks that an open directory is no home.
    pub(super) fn expect_no_home(&self, dir: impl AsFd) -> Result<(), FsError> {
        let node = Node::of(&dir)?;
        node.expect_device(self.device())?;
        self.homes.expect_none(&dir, &node)
    }

    /// The handle that walks of more than one name begin at. The passed folders must be known.
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The directory at a path, if it, the base and all on the way are known to be no homes, and
    /// are as they were then. Asked after a walk it says so of the walk.
    ///
    /// The base is looked at last: if it did not change since, its entry was the same directory all
    /// the time, also when that was looked at and when the walk passed it; and so on down.
    pub(super) fn known(&self, path: &str) -> Option<Node> {
        let known = |node: &Node| self.homes.knows(node);
        let at = |prefix: &str| Node::at(&self.fd, prefix).ok().flatten().filter(known);
        let found = at(path)?;
        let mut upwards = path.rmatch_indices('/').filter_map(|(end, _)| path.get(..end));
        let all = upwards.all(|prefix| at(prefix).is_some());
        (all && Node::of(&self.fd).is_ok_and(|base| known(&base))).then_some(found)
    }

    /// True if a directory is known to be no home, and has not changed since.
    pub(super) fn is_no_home(&self, node: &Node) -> bool {
        self.homes.knows(node)
    }

    /// The device all of the base must be on.
    pub(super) fn device(&self) -> u64 {
        self.ident.device
    }
}

/// True if a directory is the other, or one of its ancestors, by inode and not by name.
pub(super) fn is_above(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> Result<bool, FsError> {
    let top = Node::of(one)?.ident;
    let mut at = other
        .try_clone_to_owned()
        .map_err(|error| FsError::from(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    let mut ident = Node::of(&at)?.ident;
    for _ in 0..ANCESTORS_MAX {
        if ident == top {
            return Ok(true);
        }
        let flags = PASSED | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        at = rustix::fs::openat(&at, "..", flags, Mode::empty())?;
        let above = Node::of(&at)?.ident;
        // The root is its own parent.
        if above == ident {
            return Ok(false);
        }
        ident = above;
    }
    Err(FsError::TooLarge)
}

/// A step of making folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A folder is missing and about to be made.
    Missing,
    /// It was made.
    Made,
}
