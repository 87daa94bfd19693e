//! Second names: a file that the agent may write, and that has another name outside (a hard link),
//! is written there too. Package managers (uv, pnpm) and `cp -l` make such files by the thousand.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps, Uid,
    fchmod, fchown, fstat, futimens, linkat, openat, openat2, renameat, statat, syncfs, unlinkat,
};
use rustix::io::Errno;
use syscap::boundary::Place;

use crate::exit::{Failure, diagnose, tell};
use crate::terminal;

/// Most names that are looked at.
const NAMES_MAX: usize = 8_000_000;
/// Most files that a message lists.
const LISTED_MAX: usize = 10;
/// Most changed files that are listed at the end.
const CHANGED_MAX: usize = 200;

/// What becomes of files with another name outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Choice {
    /// Each gets bytes of its own before the start.
    Copy,
    /// They stay: the agent may change them outside, too.
    Pass,
}

/// Which file something is: device and inode.
type Ident = (u64, u64);

fn ident(stat: &Stat) -> Ident {
    (stat.st_dev, stat.st_ino)
}

/// A file with several names, and those of them that the agent may write.
struct Linked {
    names: Vec<Name>,
    /// All names, of a type that holds the count of each architecture.
    all: u128,
    size: u64,
    kind: FileType,
    noted: Noted,
}

/// A name, by the writable place that it lies in.
struct Name {
    place: usize,
    below: PathBuf,
}

/// A file as it is noted: a time that is set back does not hide a change, since this one can't be.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Noted {
    ident: Ident,
    size: i64,
    changed: (i64, u128),
}

impl Noted {
    fn of(stat: &Stat) -> Self {
        let changed = (stat.st_ctime, u128::from(stat.st_ctime_nsec));
        Self { ident: ident(stat), size: stat.st_size, changed }
    }
}

/// The writable places of a run, walked together.
struct Walk<'p> {
    places: Vec<(&'p Place, OwnedFd)>,
    folders: BTreeSet<Ident>,
    /// Names of single files that are places of their own: a walk may come to them, too.
    single: BTreeSet<(Ident, OsString)>,
    files: BTreeMap<Ident, Linked>,
    names: usize,
    /// The first folder that could not be looked at.
    unseen: Option<(PathBuf, Errno)>,
}

/// Looks for files with another name outside, and does with them what was chosen. `None` if the run
/// may begin and there is nothing to list at its end.
pub(super) fn settle<'p>(
    places: impl Iterator<Item = &'p Place>,
    choice: Option<Choice>,
) -> Result<Option<Passed>, Failure> {
    let mut walk = Walk::new(places)?;
    walk.all()?;
    let outside: Vec<&Linked> = walk.outside().collect();
    if outside.is_empty() && walk.unseen.is_none() {
        return Ok(None);
    }
    let choice = match choice {
        None if terminal::is_there() => asked(&walk, &outside)?,
        choice => choice,
    };
    match (choice, &walk.unseen) {
        (Some(Choice::Pass), _) => Ok(Some(Passed::new(&walk, &outside))),
        (Some(Choice::Copy), None) => {
            let bytes = walk.copy(&outside)?;
            tell(&format!("{} files have bytes of their own now ({})", outside.len(), mib(bytes)));
            Ok(None)
        }
        (Some(Choice::Copy) | None, Some((folder, error))) => Err(Failure::Usage {
            what: folder.display().to_string(),
            advice: format!(
                "can't be looked into ({error}), so a file there may have another name outside that \
                 the agent would change with it; make it readable, or go on: --linked pass"
            ),
        }),
        (None, None) => Err(Failure::Usage {
            what: "--linked".to_owned(),
            advice: format!(
                "{}; give each bytes of its own: --linked copy; or go on: --linked pass",
                walk.told(&outside)
            ),
        }),
    }
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

fn asked(walk: &Walk<'_>, outside: &[&Linked]) -> Result<Option<Choice>, Failure> {
    if outside.is_empty() {
        return Ok(None);
    }
    let question = format!("{}. copy, pass, or no: ", walk.told(outside));
    let answer = terminal::ask_shown(&question).map_err(Failure::Stream)?;
    Ok(match answer.trim() {
        "copy" => Some(Choice::Copy),
        "pass" => Some(Choice::Pass),
        _ => None,
    })
}

impl<'p> Walk<'p> {
    fn new(places: impl Iterator<Item = &'p Place>) -> Result<Self, Failure> {
        let opened =
            places.map(|place| Ok((place, place.handle().map_err(Failure::file(place.shown()))?)));
        Ok(Self {
            places: opened.collect::<Result<_, Failure>>()?,
            folders: BTreeSet::new(),
            single: BTreeSet::new(),
            files: BTreeMap::new(),
            names: 0,
            unseen: None,
        })
    }

    fn outside(&self) -> impl Iterator<Item = &Linked> {
        self.files
            .values()
            .filter(|file| u128::try_from(file.names.len()).is_ok_and(|n| n < file.all))
    }

    /// All places: folders first, so that a single file among them is known by its name there.
    fn all(&mut self) -> Result<(), Failure> {
        let is_folder = |walk: &Self, place: usize| {
            walk.places.get(place).is_some_and(|(of, _)| of.is_folder())
        };
        for place in 0..self.places.len() {
            if is_folder(self, place) {
                self.folder(place);
            }
        }
        for place in 0..self.places.len() {
            if !is_folder(self, place) {
                self.file(place)?;
            }
        }
        Ok(())
    }

    /// A place that is a single file.
    fn file(&mut self, place: usize) -> Result<(), Failure> {
        let Some((of, handle)) = self.places.get(place) else { return Ok(()) };
        let failed = Failure::file(of.shown());
        let read = || {
            let real = of.real()?;
            let above = real.parent().unwrap_or(Path::new("/"));
            let above = statat(CWD, above, AtFlags::empty())?;
            Ok((fstat(handle)?, ident(&above), real.file_name().unwrap_or_default().to_owned()))
        };
        let (stat, above, name): (Stat, Ident, OsString) = read().map_err(failed)?;
        // A second grant of one file is one name.
        if self.single.insert((above, name)) && !self.folders.contains(&above) {
            self.note(place, PathBuf::new(), &stat);
        }
        Ok(())
    }

    /// A place that is a folder, to its end.
    fn folder(&mut self, place: usize) {
        let mut waiting = vec![PathBuf::new()];
        while let Some(below) = waiting.pop() {
            let entries = self.open(place, &below, OFlags::DIRECTORY | OFlags::RDONLY);
            let entries = entries.and_then(|folder| {
                let known = !self.folders.insert(ident(&fstat(&folder)?));
                if known { Ok(None) } else { Ok(Some((Dir::read_from(&folder)?, folder))) }
            });
            let (entries, folder) = match entries {
                Ok(Some(entries)) => entries,
                // By another mount, or as a place of its own, it was looked into; or it is gone.
                Ok(None) | Err(Errno::NOENT) => continue,
                Err(error) => {
                    self.misses(place, &below, error);
                    continue;
                }
            };
            for entry in entries {
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(error) => {
                        self.misses(place, &below, error);
                        break;
                    }
                };
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                self.names = self.names.saturating_add(1);
                if self.names > NAMES_MAX {
                    return self.misses(place, &below, Errno::TOOBIG);
                }
                let path = below.join(OsStr::from_bytes(name.to_bytes()));
                match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                        waiting.push(path);
                    }
                    Ok(stat) => self.note(place, path, &stat),
                    Err(Errno::NOENT) => {}
                    Err(error) => self.misses(place, &below, error),
                }
            }
        }
    }

    /// Opens what lies below a place, through no link.
    fn open(&self, place: usize, below: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let (_, handle) = self.places.get(place).ok_or(Errno::INVAL)?;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        match below.as_os_str().is_empty() {
            true => openat(handle, ".", flags, Mode::empty()),
            false => {
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                openat2(handle, below, flags, Mode::empty(), resolve)
            }
        }
    }

    fn misses(&mut self, place: usize, below: &Path, error: Errno) {
        let folder = self.path(place, below);
        self.unseen.get_or_insert((folder, error));
    }

    fn note(&mut self, place: usize, below: PathBuf, stat: &Stat) {
        if stat.st_nlink < 2 {
            return;
        }
        let file = self.files.entry(ident(stat)).or_insert_with(|| Linked {
            names: Vec::new(),
            all: u128::from(stat.st_nlink),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            kind: FileType::from_raw_mode(stat.st_mode),
            noted: Noted::of(stat),
        });
        file.names.push(Name { place, below });
    }

    fn path(&self, place: usize, below: &Path) -> PathBuf {
        let of = self.places.get(place).map(|(of, _)| of.real().unwrap_or(of.shown().to_owned()));
        match below.as_os_str().is_empty() {
            true => of.unwrap_or_default(),
            false => of.unwrap_or_default().join(below),
        }
    }

    fn told(&self, outside: &[&Linked]) -> String {
        let first = outside.iter().take(LISTED_MAX).filter_map(|file| file.names.first());
        let first: Vec<String> =
            first.map(|name| self.path(name.place, &name.below).display().to_string()).collect();
        let more = match outside.len().saturating_sub(LISTED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let bytes = outside.iter().map(|file| file.size).fold(0, u64::saturating_add);
        format!(
            "{} files that the agent may write have another name outside (hard links), and would change \
             there, too ({}): {}{more}",
            outside.len(),
            mib(bytes),
            first.join(", ")
        )
    }

    /// Gives each of these files bytes of its own: copies beside them, all of them durable, take their
    /// names. An error removes the copies that have no name yet.
    fn copy(&self, outside: &[&Linked]) -> Result<u64, Failure> {
        let mut made: Vec<(OwnedFd, OsString, &Linked)> = Vec::new();
        let copied = outside.iter().try_for_each(|file| {
            let name = file.names.first().ok_or(Errno::INVAL).map_err(io::Error::from);
            let copied = name.and_then(|name| self.copy_one(name, file));
            made.push(copied.map_err(|error| {
                let name = file.names.first().map(|name| self.path(name.place, &name.below));
                Failure::file(&name.unwrap_or_default())(error)
            })?);
            Ok(())
        });
        let named = copied.and_then(|()| {
            sync(made.iter().map(|(folder, ..)| folder)).map_err(Failure::Stream)?;
            made.iter().try_for_each(|(folder, copy, file)| self.name(folder, copy, file))
        });
        if let Err(failure) = named {
            for (folder, copy, _) in &made {
                // One that has taken its file's name is not there any more.
                unlinkat(folder, copy, AtFlags::empty()).unwrap_or(());
            }
            return Err(failure);
        }
        Ok(made.iter().map(|(.., file)| file.size).fold(0, u64::saturating_add))
    }

    /// A copy beside a file, of the same mode, owner and times.
    fn copy_one<'f>(
        &self,
        name: &Name,
        file: &'f Linked,
    ) -> io::Result<(OwnedFd, OsString, &'f Linked)> {
        if file.kind != FileType::RegularFile {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "is no regular file"));
        }
        let (folder, own) = self.at(name)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut from = File::from(openat(&folder, own, flags, Mode::empty())?);
        let stat = fstat(&from)?;
        if ident(&stat) != file.noted.ident {
            return Err(Errno::STALE.into());
        }
        let copy = OsString::from(format!(".syscap-{:x}-{:x}", std::process::id(), stat.st_ino));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let made = openat(&folder, &copy, flags, Mode::RUSR | Mode::WUSR)?;
        let written = (|| {
            let mut to = File::from(made.try_clone()?);
            io::copy(&mut from, &mut to)?;
            let (user, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
            let own = fstat(&made)?;
            if (own.st_uid, own.st_gid) != (stat.st_uid, stat.st_gid) {
                fchown(&made, Some(user), Some(group))?;
            }
            fchmod(&made, Mode::from_raw_mode(stat.st_mode))?;
            let time = |seconds, nanos| {
                let tv_nsec = i64::try_from(nanos).unwrap_or(0);
                Timespec { tv_sec: seconds, tv_nsec }
            };
            let last_access = time(stat.st_atime, stat.st_atime_nsec);
            let last_modification = time(stat.st_mtime, stat.st_mtime_nsec);
            futimens(&made, &Timestamps { last_access, last_modification })?;
            Ok(())
        })();
        if let Err(error) = written {
            unlinkat(&folder, &copy, AtFlags::empty()).unwrap_or(());
            return Err(error);
        }
        Ok((folder, copy, file))
    }

    /// Gives the copy each name of the file.
    fn name(&self, folder: &OwnedFd, copy: &OsStr, file: &Linked) -> Result<(), Failure> {
        for (number, name) in file.names.iter().enumerate() {
            let mut link = copy.to_owned();
            link.push(format!("-{number}"));
            let renamed = self.at(name).and_then(|(place, own)| {
                linkat(folder, copy, &place, &link, AtFlags::empty())?;
                Ok(renameat(&place, &link, &place, own)?)
            });
            renamed.map_err(|error| Failure::file(&self.path(name.place, &name.below))(error))?;
        }
        let removed = unlinkat(folder, copy, AtFlags::empty());
        removed.map_err(|error| Failure::Stream(error.into()))
    }

    /// The folder of a name, and the name in it.
    fn at<'n>(&self, name: &'n Name) -> io::Result<(OwnedFd, &'n OsStr)> {
        // A file that is a place of its own can't be given other bytes: what is opened is that file.
        let own = name.below.file_name().ok_or_else(|| {
            io::Error::new(io::ErrorKind::Unsupported, "is opened by itself: open its folder")
        })?;
        let above = name.below.parent().unwrap_or(Path::new(""));
        Ok((self.open(name.place, above, OFlags::DIRECTORY | OFlags::RDONLY)?, own))
    }
}

/// Makes what was written durable, once for each file system.
fn sync<'f>(folders: impl Iterator<Item = &'f OwnedFd>) -> io::Result<()> {
    let mut synced = BTreeSet::new();
    for folder in folders {
        if synced.insert(fstat(folder)?.st_dev) {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            syncfs(openat(folder, ".", flags, Mode::empty())?)?;
        }
    }
    Ok(())
}

/// Files with another name outside that the agent was let write.
pub(super) struct Passed {
    files: Vec<(PathBuf, Noted)>,
}

impl Passed {
    fn new(walk: &Walk<'_>, outside: &[&Linked]) -> Self {
        let names =
            outside.iter().flat_map(|file| file.names.iter().map(|name| (name, file.noted)));
        Self {
            files: names.map(|(name, noted)| (walk.path(name.place, &name.below), noted)).collect(),
        }
    }

    /// Lists those that changed, or that have another file in their place.
    pub(super) fn list(&self) {
        let changed: Vec<&PathBuf> = self
            .files
            .iter()
            .filter(|(path, noted)| {
                let now = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
                now.map_or(true, |now| Noted::of(&now) != *noted)
            })
            .map(|(path, _)| path)
            .collect();
        if changed.is_empty() {
            return;
        }
        diagnose(
            "files with another name outside have changed, or given way to others; look at both:",
        );
        for path in changed.iter().take(CHANGED_MAX) {
            diagnose(&format!("  {}", path.display()));
        }
        if let Some(more) = changed.len().checked_sub(CHANGED_MAX).filter(|more| *more > 0) {
            diagnose(&format!("  and {more} more"));
        }
    }
}
