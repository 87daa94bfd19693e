//! A process of its own: what a server sheds of the client that started it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, setsid, umask};
use signal_hook::consts::SIGHUP;
use syscap::audit::DATABASE_FILE;

use crate::exit::Failure;
use crate::serve::log;

/// Leaves the terminal, the umask, the ignored signals and the low limit of open files of whoever
/// started it. What the system refuses of it stays as it was.
pub(crate) fn become_one() {
    // Started anew it leads no group of processes, so it can lead a session.
    setsid().map(drop).unwrap_or(());
    umask(Mode::RWXG | Mode::RWXO);
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files }).unwrap_or(());
    // A handler, and not `SIG_IGN`, which every program would get that is started. Some can't have
    // one, and none of these is ever ignored.
    for signal in ignored().into_iter().chain([SIGHUP]) {
        drop(signal_hook::flag::register(signal, Arc::default()));
    }
}

/// The signals that whoever started it ignored.
fn ignored() -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (1..=31).filter(|signal| *signal != PIPE && mask >> (signal - 1) & 1 == 1).collect()
}

/// A write to nobody fails, and ends nothing: the runtime of the language ignores it.
const PIPE: i32 = signal_hook::consts::SIGPIPE;

/// Looks after the log's length.
pub(crate) fn look(home: &Path) -> Result<(), Failure> {
    if log::is_full() {
        let next = log::open(home).map_err(Failure::file(home))?;
        rustix::stdio::dup2_stderr(next).map_err(|error| Failure::Stream(error.into()))?;
    }
    Ok(())
}

/// The files by which a home is the one that this process serves.
pub(crate) struct Place {
    files: [(PathBuf, Option<(u64, u64)>); 2],
}

impl Place {
    /// They are as they lie there now.
    pub(crate) fn of(home: &Path) -> Result<Self, Failure> {
        let folder = std::path::absolute(home).map_err(Failure::file(home))?;
        let named = |name: &str| {
            let path = folder.join(name);
            let file = identity(&path);
            (path, file)
        };
        Ok(Self { files: [named("socket"), named(DATABASE_FILE)] })
    }

    /// Fails where another file, or none, has one of their names: nobody finds this process there, and
    /// it serves what is nobody's home.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.files.iter().find(|(path, file)| identity(path) != *file) {
            Some((path, _)) => Err(Failure::Gone(path.clone())),
            None => Ok(()),
        }
    }
}

/// Which file a name leads to.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}
