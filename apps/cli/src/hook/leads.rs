//! The target of a path, by the links on the way.

use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// Most links without a file that are followed.
const LINKS_MAX: usize = 40;

/// The file or folder that a path leads to; where there is none, what would be made there: the
/// nearest folder that is, and the names behind it. `None` where it can't be told, as behind a
/// link of `/proc`, which leads elsewhere for each process.
pub(super) fn to(folder: Option<&str>, path: &str) -> Option<String> {
    let mut whole = Path::new(folder.unwrap_or_default()).join(path);
    // Where this process works, the client need not.
    if !whole.is_absolute() {
        return None;
    }
    for _ in 0..LINKS_MAX {
        match step(&whole)? {
            Step::Real(real) => return real.to_str().map(str::to_owned),
            Step::Link(leads) => whole = leads,
        }
    }
    None
}

enum Step {
    Real(PathBuf),
    /// The same with one link followed: a link whose file is missing is followed by hand, since a
    /// write makes that file.
    Link(PathBuf),
}

fn step(whole: &Path) -> Option<Step> {
    let mut there = whole;
    let mut behind = Vec::new();
    loop {
        let whole = |begin: PathBuf| behind.iter().rev().fold(begin, |path, name| path.join(name));
        match real(there) {
            Ok(real) => return Some(Step::Real(whole(real))),
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(_) => return None,
        }
        if let Ok(to) = fs::read_link(there) {
            return Some(Step::Link(whole(there.parent()?.join(to))));
        }
        // `..` behind what is not there leads nowhere that could be told.
        behind.push(there.file_name()?);
        there = there.parent()?;
    }
}

fn real(path: &Path) -> Result<PathBuf, Errno> {
    let opened = openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    );
    let of = |error: io::Error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
    match opened {
        Ok(handle) => fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).map_err(of),
        // A system without it.
        Err(Errno::NOSYS) => fs::canonicalize(path).map_err(of),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_and_those_of_proc_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(folder.path()).unwrap();
        let text = |path: &str| real.join(path).to_str().unwrap().to_owned();
        let base = text("");
        fs::create_dir_all(real.join(".git/hooks")).unwrap();
        symlink(".git", real.join("plain")).unwrap();
        symlink("plain/hooks/new", real.join("dangling")).unwrap();
        symlink("circle", real.join("circle")).unwrap();
        for (path, leads) in [
            ("plain/hooks/pre-commit", ".git/hooks/pre-commit"),
            ("plain/new/a.txt", ".git/new/a.txt"),
            ("src/a.rs", "src/a.rs"),
            ("./plain", ".git"),
            ("dangling", ".git/hooks/new"),
        ] {
            assert_eq!(to(Some(&base), path), Some(text(leads)), "{path}");
            assert_eq!(to(None, &text(path)), Some(text(leads)), "{path}");
        }
        assert_eq!(to(Some(&base), "/proc/self/cwd/a"), None);
        assert_eq!(to(Some(&base), "circle"), None);
        assert_eq!(to(None, "src/a.rs"), None);
        assert_eq!(to(Some(&base), "missing/../../x"), None);
    }
}
