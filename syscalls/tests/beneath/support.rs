//! A base with something secret beside it, and what shows that the secret was left alone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use syscap_format::Label;
use syscap_syscalls::beneath::{
    Charge, Effect, Existing, FsError, Location, Opener, Openers, Parents, Refused, TempName, Turn,
    Write, WriteFailure, Written, open_by,
};
use tempfile::TempDir;

pub(crate) use kernel_support::mounts::{MOUNTS, is_root, mount, with_mounts};

/// Opens a directory by one opener.
type Open = fn(&Path) -> Result<Arc<dyn Opener>, FsError>;

/// All openers: each must pass every test.
pub(crate) const OPENERS: [(&str, Open); 2] = [
    ("openat2", |path| open_by(Openers::Openat2, path)),
    ("cap_std", |path| open_by(Openers::CapStd, path)),
];

/// Names the opener that is tested; the first where it is not set.
pub(crate) const OPENER: &str = "SYSCAP_TEST_OPENER";

/// Opens a directory by the opener that is tested.
pub(crate) fn open(path: &Path) -> Result<Arc<dyn Opener>, FsError> {
    let named = std::env::var(OPENER);
    let mut tested = OPENERS.iter().filter(|(name, _)| named.as_ref().is_ok_and(|one| one == name));
    let (_, open) = tested.next().unwrap_or(&OPENERS[0]);
    open(path)
}

/// Whether the opener that is tested is `openat2`: only of that one walk each is claimed, and what
/// its errors mean.
pub(crate) fn is_openat2() -> bool {
    std::env::var(OPENER).is_err()
}

/// Whether symbolic links on the way are followed before anything is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// None is.
    Refuse,
    /// Relative links that stay within the base are.
    FollowWithin,
}

/// Where names lead.
pub(crate) fn locate<S: AsRef<str>>(
    base: &dyn Opener,
    names: &[S],
    links: Links,
) -> Result<Location, FsError> {
    let written = Location::new(names)?;
    match links {
        Links::Refuse => Ok(written),
        Links::FollowWithin => base.resolve(&written, &|_| true),
    }
}

/// What no read may ever return.
pub(crate) const CANARY: &[u8] = b"CANARY: this is outside";
/// No file in these tests is larger, but for the ones that are there to be.
pub(crate) const SIZE_MAX: u64 = 1 << 20;

/// `inside`, which is the base, and `outside`, with a secret file and a secret folder.
pub(crate) struct World {
    dir: TempDir,
    pub(crate) base: Arc<dyn Opener>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::within(TempDir::new().unwrap())
    }

    /// In memory where that is possible: for tests that write thousands of files.
    pub(crate) fn fast() -> Self {
        let memory = Path::new("/dev/shm");
        Self::within(TempDir::new_in(memory).or_else(|_| TempDir::new()).unwrap())
    }

    fn within(mut dir: TempDir) -> Self {
        // What is mounted must not be walked into and emptied: `with_mounts` cleans up.
        dir.disable_cleanup(std::env::var_os(MOUNTS).is_some());
        fs::create_dir(dir.path().join("inside")).unwrap();
        let outside = dir.path().join("outside");
        fs::create_dir_all(outside.join("folder")).unwrap();
        fs::write(outside.join("secret"), CANARY).unwrap();
        fs::write(outside.join("folder/secret"), CANARY).unwrap();
        let base = open(&dir.path().join("inside")).unwrap();
        Self { dir, base }
    }

    pub(crate) fn inside(&self, path: &str) -> PathBuf {
        self.dir.path().join("inside").join(path)
    }

    pub(crate) fn outside(&self, path: &str) -> PathBuf {
        self.dir.path().join("outside").join(path)
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    /// Reads all of a file, as the tools do: locate, open, read.
    pub(crate) fn read(&self, path: &str, links: Links) -> Result<Vec<u8>, FsError> {
        let at = locate(&*self.base, &names(path), links)?;
        Ok(self.base.open_file(&at, SIZE_MAX)?.read(0, 1 << 16)?.bytes)
    }

    /// Lists the names of a directory.
    pub(crate) fn list(&self, path: &str, links: Links) -> Result<Vec<Vec<u8>>, FsError> {
        let at = locate(&*self.base, &names(path), links)?;
        let listing = self.base.list(&at, 1000)?;
        Ok(listing.entries.into_iter().map(|entry| entry.name).collect())
    }

    /// Writes a file under an unlimited meter.
    pub(crate) fn write(
        &self,
        path: &str,
        content: &[u8],
        existing: Existing,
        parents: Parents,
        links: Links,
    ) -> Result<Written, WriteFailure> {
        let early = |error| WriteFailure { error, effect: Effect::NotDone, folders: 0 };
        let at = locate(&*self.base, &names(path), links).map_err(early)?;
        self.write_at(&at, content, existing, parents, &mut |_| Ok(()))
    }

    /// Replaces a file, refusing links and missing folders.
    pub(crate) fn put(&self, path: &str, content: &[u8]) -> Result<Written, WriteFailure> {
        self.write(path, content, Existing::Replace, Parents::Require, Links::Refuse)
    }

    pub(crate) fn write_at(
        &self,
        at: &Location,
        content: &[u8],
        existing: Existing,
        parents: Parents,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<Written, WriteFailure> {
        let temp = fresh_temp();
        let job = Write { existing, ..replacing(content, &temp) };
        let turn = self.base.turn(at, parents, content, Duration::ZERO, meter)?;
        self.base.write(turn, &job, meter)
    }

    /// Asserts that every operation refuses `path` so, and that nothing was read or changed.
    pub(crate) fn assert_refused(&self, path: &str, links: Links, error: FsError) {
        let before = snapshot(self.root());
        assert_eq!(self.read(path, links), Err(error), "read {path}");
        assert_eq!(self.list(path, links), Err(error), "list {path}");
        let parents = Parents::Create(syscap_syscalls::beneath::FolderMode::Shared);
        let wrote = self.write(path, b"gone", Existing::Replace, parents, links);
        let expected = WriteFailure { error, effect: Effect::NotDone, folders: 0 };
        assert_eq!(wrote, Err(expected), "write {path}");
        assert_eq!(snapshot(self.root()), before, "{path} changed something");
    }
}

/// The names of `a/b/c`, empty ones included, since they are to be refused; "" is the base.
pub(crate) fn names(path: &str) -> Vec<&str> {
    if path.is_empty() { Vec::new() } else { path.split('/').collect() }
}

/// The turn to change a name that nobody else has, in a folder that is there.
pub(crate) fn turn(base: &dyn Opener, at: &Location) -> Result<Turn, WriteFailure> {
    base.turn(at, Parents::Require, &[], Duration::ZERO, &mut |_| Ok(()))
}

/// Whatever is there is replaced by that.
pub(crate) fn replacing<'a>(content: &'a [u8], temp: &'a TempName) -> Write<'a> {
    let (existing, label) = (Existing::Replace, Label::PUBLIC);
    Write { content, existing, expected: None, made_from: None, temp, label }
}

pub(crate) fn fresh_temp() -> TempName {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    TempName::new(&format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed))).unwrap()
}

/// All of a tree: kinds, permissions, contents and link targets by path.
pub(crate) fn snapshot(root: &Path) -> BTreeMap<PathBuf, (String, Vec<u8>)> {
    let mut seen = BTreeMap::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(path) = todo.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let kind = meta.file_type();
        let mode = meta.permissions().mode() & 0o7777;
        let (name, content) = if kind.is_symlink() {
            ("link", fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
        } else if kind.is_dir() {
            todo.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            ("directory", Vec::new())
        } else if kind.is_file() && meta.len() <= SIZE_MAX {
            ("file", fs::read(&path).unwrap())
        } else {
            (if kind.is_fifo() { "fifo" } else { "other" }, meta.len().to_le_bytes().to_vec())
        };
        seen.insert(path.strip_prefix(root).unwrap().into(), (format!("{name} {mode:o}"), content));
    }
    seen
}
