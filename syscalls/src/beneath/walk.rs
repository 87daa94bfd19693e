//! The two ways to something beneath a directory that is open.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use rustix::fs::OFlags;
#[cfg(target_os = "linux")]
use rustix::fs::{AtFlags, Mode, ResolveFlags, StatxFlags, statx};
use rustix::io::Errno;
use syscap_format::Enforcement;

use super::{error::FsError, gate::Node};

/// How often a walk that was disturbed is tried before the answer is "busy". Without `..` and
/// links a disturbed walk is rare, so a caller that runs out faces a storm.
const TRIES: u32 = 32;

/// No climbing, no links of either sort, no other mount.
#[cfg(target_os = "linux")]
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_XDEV);

/// Names a thing without opening it, where the system can: else it opens it for reading.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub(crate) const PATH: OFlags = OFlags::PATH;
/// Names a thing without opening it, where the system can: else it opens it for reading.
#[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
pub(crate) const PATH: OFlags = OFlags::RDONLY;
/// Names a directory, to walk on from it.
pub(super) const PASSED: OFlags = PATH.union(OFlags::DIRECTORY);
/// Opens a directory. The kernel looks at the kind before it opens, so nothing else is touched.
pub(super) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
/// Opens a file for reading; never waits and never takes a terminal.
pub(super) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// Opens a file to change it; never waits, never takes a terminal, never cuts it.
pub(super) const CHANGE: OFlags =
    OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// How things are reached. It is chosen when the base is opened and stays: what one way refuses,
/// with whatever error, the other is not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    /// By `openat2`: the system itself goes the whole way, and sees links and mounts on it.
    #[cfg(target_os = "linux")]
    Openat2,
    /// By `cap-std`, name by name, each judged by its own handle before the next.
    CapStd {
        /// The device that all must be on.
        device: u64,
        /// The mount that all must be of, where the system tells one mount from another: a folder
        /// of the same device can be mounted anywhere.
        mount: Option<u64>,
    },
}

/// A thing that was looked at and not opened.
#[derive(Debug)]
pub(super) struct Named {
    /// Its entry.
    pub(super) node: Node,
    /// It itself, where it can be held so: a link, too.
    pub(super) held: Option<OwnedFd>,
}

impl Walk {
    /// By `cap-std`, beneath this directory.
    pub(super) fn by_cap_std(base: impl AsFd) -> Result<Self, FsError> {
        let device = Node::of(&base)?.ident.device;
        Ok(Self::CapStd { device, mount: mount_at(&base, b"")? })
    }

    /// The level for the record.
    pub(super) const fn enforcement(self) -> Enforcement {
        match self {
            #[cfg(target_os = "linux")]
            Self::Openat2 => Enforcement::Openat2,
            Self::CapStd { .. } => Enforcement::CapStd,
        }
    }

    /// Opens `path` beneath `dir`. Never follows a link, at the end or on the way.
    pub(super) fn open(self, dir: impl AsFd, path: &[u8], how: OFlags) -> Result<OwnedFd, FsError> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Openat2 => at_once(dir, path, how),
            Self::CapStd { .. } => {
                let (dir, name) = self.parent(dir.as_fd(), path)?;
                self.step(&dir, name, how)
            }
        }
    }

    /// Looks at what stands at `path` beneath `dir` without opening it; a link at the end is looked
    /// at itself.
    pub(super) fn name(self, dir: impl AsFd, path: &[u8]) -> Result<Named, FsError> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Openat2 => {
                let held = at_once(dir, path, OFlags::PATH | OFlags::NOFOLLOW)?;
                Ok(Named { node: Node::of(&held)?, held: Some(held) })
            }
            Self::CapStd { .. } => {
                let (dir, name) = self.parent(dir.as_fd(), path)?;
                let node = Node::at(&dir, name)?.ok_or(FsError::NotFound)?;
                self.expect_here(&node, mount_at(&dir, name)?)?;
                Ok(Named { node, held: None })
            }
        }
    }

    /// The folder that the last name of a path stands in, and that name.
    fn parent<'p>(self, dir: BorrowedFd<'_>, path: &'p [u8]) -> Result<(Dir, &'p [u8]), FsError> {
        let mut at = Dir::from(dir.try_clone_to_owned().map_err(|error| of(&error))?);
        let mut names = path.split(|byte| *byte == b'/').filter(|name| *name != b".");
        let Some(mut last) = names.next() else { return Ok((at, b".")) };
        for name in names {
            at = Dir::from(self.step(&at, last, PASSED)?);
            last = name;
        }
        if last == b".." { Err(FsError::Escapes) } else { Ok((at, last)) }
    }

    /// Opens one name, where it leads to the base's own device and mount.
    fn step(self, dir: &Dir, name: &[u8], how: OFlags) -> Result<OwnedFd, FsError> {
        let opened = one(dir, name, how);
        match &opened {
            Ok(fd) => self.expect_here(&Node::of(fd)?, mount_at(fd, b"")?)?,
            // Of what is mounted there nothing is told.
            Err(FsError::NotDirectory) => {
                if let Some(node) = Node::at(dir, name)? {
                    self.expect_here(&node, mount_at(dir, name)?)?;
                }
            }
            Err(_) => {}
        }
        opened
    }

    fn expect_here(self, node: &Node, at: Option<u64>) -> Result<(), FsError> {
        match self {
            Self::CapStd { device, mount } if mount == at => node.expect_device(device),
            _ => Err(FsError::OtherDevice),
        }
    }
}

/// The whole path at once.
#[cfg(target_os = "linux")]
fn at_once(dir: impl AsFd, path: &[u8], how: OFlags) -> Result<OwnedFd, FsError> {
    let flags = how | OFlags::CLOEXEC;
    for _ in 0..TRIES {
        match rustix::fs::openat2(&dir, path, flags, Mode::empty(), BENEATH) {
            Ok(fd) => return Ok(fd),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(FsError::of_walk(errno)),
        }
    }
    Err(FsError::Busy)
}

/// One name. Flags besides reading and writing go to the system as they stand: `cap-std` has no
/// word for an open that neither waits nor takes a terminal.
fn one(dir: &Dir, name: &[u8], how: OFlags) -> Result<OwnedFd, FsError> {
    let mut options = OpenOptions::new();
    options.read(true).write(how.contains(OFlags::RDWR)).follow(FollowSymlinks::No);
    options.custom_flags(how.difference(OFlags::RWMODE).bits().cast_signed());
    for _ in 0..TRIES {
        match dir.open_with(OsStr::from_bytes(name), &options) {
            Ok(file) => return Ok(file.into()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Of a link the system says, too, that it is no folder.
            Err(error) => match (Node::at(dir, name)?, of(&error)) {
                (Some(node), _) if node.is_link() => return Err(FsError::Link),
                (Some(node), FsError::NotDirectory) if node.is_directory() => {}
                (_, error) => return Err(error),
            },
        }
    }
    Err(FsError::Busy)
}

/// The mount that something is of, where the system says so (Linux 5.8). With no name it is the
/// open thing itself.
#[cfg(target_os = "linux")]
fn mount_at(dir: impl AsFd, name: &[u8]) -> Result<Option<u64>, FsError> {
    let how = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    match statx(dir, name, how, StatxFlags::MNT_ID) {
        Ok(seen) if seen.stx_mask & StatxFlags::MNT_ID.bits() != 0 => Ok(Some(seen.stx_mnt_id)),
        Ok(_) | Err(Errno::NOSYS | Errno::PERM) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Mounts are not told apart here.
#[cfg(not(target_os = "linux"))]
fn mount_at(_: impl AsFd, _: &[u8]) -> Result<Option<u64>, FsError> {
    Ok(None)
}

/// The error of `cap-std`: an escape that it refused has no number.
fn of(error: &std::io::Error) -> FsError {
    match Errno::from_io_error(error) {
        Some(Errno::NXIO) => FsError::NotRegular,
        Some(errno) => FsError::from(errno),
        None if error.kind() == ErrorKind::PermissionDenied => FsError::Escapes,
        None => FsError::BadName,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::Path};

    use super::{DIRECTORY, FsError, Mode, OFlags, READ, Walk};

    fn open(path: &Path) -> rustix::fd::OwnedFd {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).unwrap()
    }

    /// No caller hands it such a path: names are checked before. It would lead nowhere all the same.
    #[test]
    fn the_walk_refuses_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("inside");
        fs::create_dir_all(inside.join("d")).unwrap();
        fs::write(folder.path().join("secret"), "outside").unwrap();
        fs::write(inside.join("d/file"), "inside").unwrap();
        symlink("d/file", inside.join("link")).unwrap();
        symlink("d", inside.join("way")).unwrap();
        let (base, absolute) = (open(&inside), folder.path().join("secret"));
        for walk in [Walk::Openat2, Walk::by_cap_std(&base).unwrap()] {
            let read = |path: &[u8]| walk.open(&base, path, READ).err();
            let named = |path: &[u8]| walk.name(&base, path).err();
            assert_eq!(read(b"d/file"), None);
            let out =
                [&b"../secret"[..], b"d/../../secret", absolute.as_os_str().as_encoded_bytes()];
            for path in out {
                let (read, named) = (read(path), named(path));
                let told = match walk {
                    Walk::Openat2 => FsError::OtherDevice,
                    Walk::CapStd { .. } if path == b"../secret" || path.starts_with(b"d/") => {
                        FsError::Escapes
                    }
                    Walk::CapStd { .. } => FsError::NotFound,
                };
                assert_eq!((read, named), (Some(told), Some(told)), "{walk:?} {path:?}");
            }
            for path in [&b".."[..], b"d/..", b"d/../.."] {
                assert!(named(path).is_some() || walk == Walk::Openat2, "{path:?}");
                assert!(walk.open(&base, path, DIRECTORY).is_err() || path == b"d/..", "{path:?}");
            }
            for path in [&b"link"[..], b"way/file"] {
                assert_eq!(read(path), Some(FsError::Link), "{walk:?} {path:?}");
            }
            assert_eq!(walk.open(&base, b"way", DIRECTORY).err(), Some(FsError::Link), "{walk:?}");
            assert!(walk.name(&base, b"link").unwrap().node.is_link());
        }
        // Of /proc a magic link leads anywhere, whatever its text says.
        let me = open(Path::new("/proc/self"));
        for walk in [Walk::Openat2, Walk::by_cap_std(&me).unwrap()] {
            for path in [&b"root/etc/passwd"[..], b"cwd/x", b"fd/0"] {
                assert_eq!(walk.open(&me, path, READ).err(), Some(FsError::Link), "{path:?}");
            }
        }
    }
}
