//! The files of a folder that other programs execute or obey, as they are at one moment.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, readlinkat};
use rustix::io::Errno;
use syscap::{format::object_id, syscalls::auto_executed::row_of_name};

/// Most files that are noted.
const FILES_MAX: usize = 10_000;
/// Most bytes that are read of them.
const BYTES_MAX: u64 = 64 << 20;
/// Most names of folders that are looked at.
const NAMES_MAX: usize = 1_000_000;
/// Deepest folder that is looked into.
const DEPTH_MAX: usize = 100;

/// The noted files, by their paths in the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    pub(super) files: BTreeMap<Vec<u8>, Noted>,
    /// True if all of the folder was looked at.
    pub(super) complete: bool,
}

/// The entry at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// A regular file: whether it can be executed, and the id of its bytes.
    File { executable: bool, digest: String },
    /// A link, which is not followed: where it leads.
    Link(Vec<u8>),
    /// An unreadable entry: a file of another kind, or one that was made unreadable.
    Unread,
}

/// How a file or folder differs from what was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    New,
    Changed,
}

/// Which names are noted in a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// The folders of the table.
    Tree,
    /// In a folder of installed packages: repositories alone. Packages bring workflows and
    /// instructions by the thousand, which nobody obeys there.
    Packages,
    /// All.
    All,
    /// `.claude`: all, but for the working trees in it.
    Claude,
    /// Working trees, each of which is a tree.
    Worktrees,
    /// A repository of git: what git executes or obeys, and not its objects.
    Git,
    /// The working trees that a repository of git has besides, each by what git keeps of it.
    GitWorktrees,
    /// `objects` of a repository.
    Objects,
    /// A repository of Mercurial, likewise.
    Mercurial,
}

impl Survey {
    /// Looks through a folder, itself given by a handle. No link is followed.
    pub(crate) fn of(folder: impl AsFd) -> io::Result<Self> {
        let mut walk = Walk { survey: Self { complete: true, ..Self::default() }, ..Walk::new() };
        let top = open(folder, b".", OFlags::RDONLY | OFlags::DIRECTORY)?;
        walk.folder(&top, &mut Vec::new(), Within::Tree, 0);
        Ok(walk.survey)
    }

    /// The entries that appeared or changed since an earlier survey. If that was incomplete, only
    /// its noted entries can be found changed.
    pub(super) fn since<'s>(
        &'s self,
        before: &'s Self,
    ) -> impl Iterator<Item = (&'s [u8], Change)> + 's {
        self.files.iter().filter_map(|(path, now)| match before.files.get(path) {
            Some(then) if then == now => None,
            Some(_) => Some((&**path, Change::Changed)),
            None if before.complete => Some((&**path, Change::New)),
            None => None,
        })
    }
}

struct Walk {
    survey: Survey,
    bytes_left: u64,
    names_left: usize,
}

impl Walk {
    fn new() -> Self {
        Self { survey: Survey::default(), bytes_left: BYTES_MAX, names_left: NAMES_MAX }
    }

    fn folder(&mut self, folder: &OwnedFd, path: &mut Vec<u8>, within: Within, depth: usize) {
        let names = match self.names(folder) {
            Ok(names) if depth < DEPTH_MAX => names,
            Ok(_) => return self.survey.complete = false,
            Err(_) => return self.unread(path, within),
        };
        // A repository need not be called `.git`.
        let has = |wanted: &[u8]| names.iter().any(|(name, _)| name == wanted);
        let whole = has(b"objects") && has(b"refs");
        // `commondir` says where the rest lies (gitrepository-layout(5)).
        let is_bare = has(b"HEAD") && (whole || has(b"commondir"));
        let within = match within {
            Within::Tree | Within::Packages if is_bare => Within::Git,
            within => within,
        };
        for (name, kind) in &names {
            let before = path.len();
            if before > 0 {
                path.push(b'/');
            }
            path.extend(name);
            self.one(folder, name, *kind, path, within, depth);
            path.truncate(before);
        }
    }

    fn one(
        &mut self,
        folder: &OwnedFd,
        name: &[u8],
        kind: FileType,
        path: &mut Vec<u8>,
        within: Within,
        depth: usize,
    ) {
        let is_folder = kind == FileType::Directory;
        let Some(inner) = inner(within, &String::from_utf8_lossy(name), is_folder) else { return };
        if !is_folder {
            return self.note(folder, name, kind, path);
        }
        match open(folder, name, OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(opened) => self.folder(&opened, path, inner, depth.saturating_add(1)),
            // It is gone.
            Err(Errno::NOENT) => {}
            Err(_) => self.unread(path, inner),
        }
    }

    /// A folder that can't be looked into.
    fn unread(&mut self, path: &[u8], within: Within) {
        match within {
            Within::Tree | Within::Packages | Within::Worktrees => self.survey.complete = false,
            Within::All
            | Within::Claude
            | Within::Git
            | Within::GitWorktrees
            | Within::Objects
            | Within::Mercurial => {
                self.survey.files.insert(path.to_vec(), Noted::Unread);
            }
        }
    }

    /// All names of a folder, in their bytes' order.
    fn names(&mut self, folder: &OwnedFd) -> Result<Vec<(Vec<u8>, FileType)>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let Some(left) = self.names_left.checked_sub(1) else {
                self.survey.complete = false;
                break;
            };
            self.names_left = left;
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let named = open(folder, name, OFlags::PATH | OFlags::NOFOLLOW);
                    let Ok(stat) = named.and_then(fstat) else { continue };
                    FileType::from_raw_mode(stat.st_mode)
                }
                kind => kind,
            };
            names.push((name.to_vec(), kind));
        }
        names.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(names)
    }

    fn note(&mut self, folder: &OwnedFd, name: &[u8], kind: FileType, path: &[u8]) {
        if self.survey.files.len() >= FILES_MAX {
            self.survey.complete = false;
            return;
        }
        let noted = match kind {
            FileType::Symlink => readlinkat(folder, name, Vec::new())
                .map_or(Noted::Unread, |to| Noted::Link(to.into_bytes())),
            FileType::RegularFile => match self.read(folder, name) {
                Ok(noted) => noted,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return,
                Err(_) => Noted::Unread,
            },
            _ => Noted::Unread,
        };
        self.survey.files.insert(path.to_vec(), noted);
    }

    /// A regular file. One that is more than what is left to read is noted as not read.
    fn read(&mut self, folder: &OwnedFd, name: &[u8]) -> io::Result<Noted> {
        // One that is no regular file by now is not waited for.
        let opened = open(folder, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK)?;
        let stat = fstat(&opened)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(Noted::Unread);
        }
        let mut bytes = Vec::new();
        if u64::try_from(stat.st_size).is_ok_and(|size| size <= self.bytes_left) {
            let most = self.bytes_left.saturating_add(1);
            File::from(opened).take(most).read_to_end(&mut bytes)?;
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            if let Some(left) = self.bytes_left.checked_sub(length) {
                self.bytes_left = left;
                let executable = stat.st_mode & 0o111 != 0;
                return Ok(Noted::File { executable, digest: object_id(&bytes).to_string() });
            }
            // It has grown.
            self.bytes_left = 0;
        }
        self.survey.complete = false;
        Ok(Noted::Unread)
    }
}

/// The scope of a name, and within it if it is a folder; `None` if it is not noted.
fn inner(within: Within, name: &str, is_folder: bool) -> Option<Within> {
    let lower = name.to_lowercase();
    match within {
        Within::All => Some(Within::All),
        Within::Claude if lower == "worktrees" && is_folder => Some(Within::Worktrees),
        Within::Claude => Some(Within::All),
        Within::Worktrees => is_folder.then_some(Within::Tree),
        // githooks(5), git-config(1), gitattributes(5), git-worktree(1); the list of a rebase that
        // was stopped can hold commands.
        Within::Git => match (&*lower, is_folder) {
            ("config" | "config.worktree" | "commondir" | "gitdir", false) => Some(Within::All),
            ("hooks" | "info" | "rebase-merge" | "rebase-apply" | "sequencer", true) => {
                Some(Within::All)
            }
            // Each lies in a folder of its own name.
            ("modules", true) => Some(Within::Tree),
            ("worktrees", true) => Some(Within::GitWorktrees),
            ("objects", true) => Some(Within::Objects),
            _ => None,
        },
        // Git's own folders hold objects alone; another may be a repository.
        Within::Objects => match &*lower {
            "info" | "pack" => None,
            lower if lower.len() == 2 && lower.bytes().all(|b| b.is_ascii_hexdigit()) => None,
            _ => is_folder.then_some(Within::Tree),
        },
        Within::GitWorktrees => is_folder.then_some(Within::Git),
        Within::Mercurial => match (&*lower, is_folder) {
            ("hgrc", false) => Some(Within::All),
            _ => None,
        },
        Within::Tree | Within::Packages => match &*lower {
            ".git" => Some(Within::Git),
            ".hg" => Some(Within::Mercurial),
            _ if within == Within::Packages => is_folder.then_some(Within::Packages),
            ".claude" => Some(Within::Claude),
            _ if row_of_name(&lower).is_some() => Some(Within::All),
            "node_modules" | "site-packages" if is_folder => Some(Within::Packages),
            _ => is_folder.then_some(Within::Tree),
        },
    }
}

/// Opens what a folder has by one name; no link is followed.
fn open(folder: impl AsFd, name: &[u8], how: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(folder, name, how | OFlags::CLOEXEC, Mode::empty(), resolve)
}
