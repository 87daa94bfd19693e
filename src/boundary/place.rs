//! Files and folders that are compared by open handles, and not by names.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::{collections::VecDeque, ffi::OsString, io};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, readlinkat, statat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

/// Deepest folder that is taken.
const DEPTH_MAX: usize = 4_096;

/// Which file something is: device and inode.
pub(super) type Ident = (u64, u64);

/// A file or folder that is open, with the folders that it lies in.
#[derive(Debug)]
pub struct Place {
    /// As it was named.
    shown: PathBuf,
    handle: OwnedFd,
    /// Itself, and each folder above.
    lineage: Vec<Ident>,
    is_folder: bool,
}

pub(super) fn ident(handle: impl AsFd) -> io::Result<(Ident, FileType)> {
    let stat = fstat(handle)?;
    Ok(((stat.st_dev, stat.st_ino), FileType::from_raw_mode(stat.st_mode)))
}

impl Place {
    /// Opens what a path leads to, links followed.
    ///
    /// # Errors
    /// If it, or a folder above it, can't be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let handle = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Self::of(handle, path)
    }

    /// An open file or folder, under that name.
    fn of(handle: OwnedFd, shown: &Path) -> io::Result<Self> {
        let (own, kind) = ident(&handle)?;
        let mut lineage = vec![own];
        let is_folder = kind == FileType::Directory;
        // From a folder that nobody may search there is no way up, but from the one above it.
        let climbed = match is_folder {
            true => climb(handle.try_clone()?, &mut lineage),
            false => Err(Errno::NOTDIR.into()),
        };
        if let Err(error) = climbed {
            if is_folder && error.kind() != io::ErrorKind::PermissionDenied {
                return Err(error);
            }
            lineage.truncate(1);
            let real = real(&handle)?;
            let gone = || io::Error::from(io::ErrorKind::NotFound);
            let (folder, name) = real.parent().zip(real.file_name()).ok_or_else(gone)?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = openat(CWD, folder, flags, Mode::empty())?;
            let there = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            // Another file may have this name meanwhile.
            if (there.st_dev, there.st_ino) != own {
                return Err(gone());
            }
            lineage.push(ident(&folder)?.0);
            climb(folder, &mut lineage)?;
        }
        Ok(Self { shown: shown.to_path_buf(), handle, lineage, is_folder })
    }

    pub(super) fn ident(&self) -> Option<Ident> {
        self.lineage.first().copied()
    }

    /// True if it is the other, or contains it.
    pub fn contains(&self, other: &Self) -> bool {
        self.ident().is_some_and(|own| other.lineage.contains(&own))
    }

    /// True if it is a folder.
    pub const fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// The path by which it was opened.
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// The same under another name.
    #[must_use]
    pub fn named(self, shown: &Path) -> Self {
        Self { shown: shown.to_path_buf(), ..self }
    }

    /// Another handle on it (`O_PATH`).
    ///
    /// # Errors
    /// If there is no room for one.
    pub fn handle(&self) -> io::Result<OwnedFd> {
        self.handle.try_clone()
    }

    /// Its present location, by its name.
    ///
    /// # Errors
    /// If the system tells none.
    pub fn real(&self) -> io::Result<PathBuf> {
        real(&self.handle)
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

/// The way by which a path leads: each folder that a name is looked up in, each link, and the end.
#[derive(Debug)]
pub struct Way {
    visited: Vec<Ident>,
    links: Vec<Link>,
    end: io::Result<Place>,
}

/// A link on a way.
#[derive(Debug)]
pub struct Link {
    /// Its path.
    pub path: PathBuf,
    /// The folder that holds it.
    folder: Place,
    /// True if another user, root aside, may replace it: it or its folder is another's, or others write
    /// there, which no sticky bit guards.
    pub is_others: bool,
}

impl Link {
    /// True if it lies in that place.
    pub fn is_within(&self, place: &Place) -> bool {
        place.contains(&self.folder)
    }
}

/// Most links that are followed: as many as the system follows.
const LINKS_MAX: usize = 40;

impl Way {
    /// Follows a path, from a folder where it is relative, as far as it leads.
    ///
    /// # Errors
    /// `ELOOP`, `ENAMETOOLONG`; where the folder can't be opened.
    pub fn of(path: &Path, from: &Path) -> io::Result<Self> {
        let begin = Place::open(if path.is_absolute() { Path::new("/") } else { from })?;
        let end = Err(Errno::NOENT.into());
        let mut way = Self { visited: begin.lineage.clone(), links: Vec::new(), end };
        // The folder that it has come to, and the names that are to come.
        let (mut folder, mut location) = (begin.handle, begin.shown);
        let mut names = names(path);
        let mut count = 0_usize;
        while let Some(name) = names.pop_front() {
            count = count.saturating_add(1);
            if count > DEPTH_MAX {
                return Err(Errno::NAMETOOLONG.into());
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let found = match openat(&folder, &name, flags, Mode::empty()) {
                Ok(found) => found,
                Err(error) => return Ok(Self { end: Err(error.into()), ..way }),
            };
            let (own, kind) = ident(&found)?;
            way.visited.push(own);
            if kind == FileType::Symlink {
                if way.links.len() >= LINKS_MAX {
                    return Err(Errno::LOOP.into());
                }
                let to = readlinkat(&folder, &name, Vec::new())?;
                let to = PathBuf::from(std::ffi::OsStr::from_bytes(to.as_bytes()));
                way.links.push(Link::in_folder(&folder, location.join(&name))?);
                for name in self::names(&to).into_iter().rev() {
                    names.push_front(name);
                }
                if to.is_absolute() {
                    let root = Place::open(Path::new("/"))?;
                    (folder, location) = (root.handle, root.shown);
                }
                continue;
            }
            location.push(&name);
            folder = found;
        }
        // By the handle that the names led to, and not by a name once more.
        way.end = Place::of(folder, path);
        Ok(way)
    }

    /// True if it leads through that place, or into it: who may write there says where it leads.
    pub fn touches(&self, place: &Place) -> bool {
        place.ident().is_some_and(|own| self.visited.contains(&own))
            || self.end.as_ref().is_ok_and(|end| place.contains(end))
    }

    /// The links on it, the first one first.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Takes them out.
    pub fn take_links(&mut self) -> Vec<Link> {
        std::mem::take(&mut self.links)
    }

    /// The file or folder at its end.
    ///
    /// # Errors
    /// If nothing is there, or nothing that may be opened.
    pub fn into_end(self) -> io::Result<Place> {
        self.end
    }
}

impl Link {
    fn in_folder(folder: &OwnedFd, path: PathBuf) -> io::Result<Self> {
        let stat = fstat(folder)?;
        let name = path.file_name().unwrap_or_default();
        let owner = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_uid;
        let is_own = |user: u32| user == 0 || user == geteuid().as_raw();
        let mode = Mode::from_raw_mode(stat.st_mode);
        // A group of this user's own, as many systems give each, is nobody else.
        let by_group = mode.contains(Mode::WGRP) && stat.st_gid != getegid().as_raw();
        let by_others = mode.contains(Mode::WOTH) || by_group;
        let is_sticky = mode.contains(Mode::SVTX);
        let is_others = !is_own(owner) || !is_own(stat.st_uid) || by_others && !is_sticky;
        let mut lineage = vec![(stat.st_dev, stat.st_ino)];
        climb(folder.try_clone()?, &mut lineage)?;
        let shown = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let folder = Place { shown, handle: folder.try_clone()?, lineage, is_folder: true };
        Ok(Self { path, folder, is_others })
    }
}

/// The names of a path; `..` is one of them, by which a folder's own parent is meant.
fn names(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn way_touches_each_place_that_a_link_leads_through() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("ws/sub")).unwrap();
        fs::create_dir(at("other")).unwrap();
        fs::write(at("other/file"), "").unwrap();
        symlink("../other/file", at("ws/out")).unwrap();
        symlink("ws/sub", at("in")).unwrap();
        symlink("loop", at("loop")).unwrap();
        let ws = Place::open(&at("ws")).unwrap();
        let touches = |path: &str| Way::of(Path::new(path), folder.path()).unwrap().touches(&ws);
        for inside in ["ws", "ws/none/x", "in", "in/..", "ws/out", "other/../ws/out", "ws/../other"]
        {
            assert!(touches(inside), "{inside}");
            assert!(Way::of(&at(inside), Path::new("/")).unwrap().touches(&ws), "{inside}");
        }
        // An agent that may write a folder may also take the right to search it away.
        fs::set_permissions(at("ws"), fs::Permissions::from_mode(0o0)).unwrap();
        let closed = Place::open(&at("ws")).unwrap();
        assert!(Place::open(folder.path()).unwrap().contains(&closed));
        assert!(Way::of(&at("ws/none"), Path::new("/")).unwrap().touches(&closed));
        fs::set_permissions(at("ws"), fs::Permissions::from_mode(0o755)).unwrap();
        for outside in ["other/file", ".", "none/x", "wsx"] {
            assert!(!touches(outside), "{outside}");
        }
        assert!(Way::of(Path::new("file"), &at("ws/sub")).unwrap().touches(&ws));
        let error = Way::of(&at("loop"), Path::new("/")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        symlink("/", at("other/link")).unwrap();
        for (mode, is_others) in [(0o755, false), (0o777, true), (0o1777, false)] {
            fs::set_permissions(at("other"), fs::Permissions::from_mode(mode)).unwrap();
            let way = Way::of(&at("other/link"), Path::new("/")).unwrap();
            assert_eq!(way.links()[0].is_others, is_others, "{mode:o}");
        }
        let way = Way::of(Path::new("ws/out"), folder.path()).unwrap();
        assert!(way.links()[0].is_within(&ws) && !way.links()[0].is_others);
        assert!(Place::open(&at("other")).unwrap().contains(&way.into_end().unwrap()));
    }
}
