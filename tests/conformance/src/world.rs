//! The runner's own observations: files, and the hits on its server.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::server::Server;
use crate::subject::{Fault, harness};

/// The folder that tokens reach. `out` beside it they do not.
const IN: &str = "in";
/// When the clock of the first check begins, in ms since 1970, and how far the next one is off.
const CLOCK_MS: u64 = 1_800_000_000_000;
const DAY_MS: u64 = 86_400_000;
/// The mark of an unreadable file or folder outside.
const UNREADABLE: Option<&[u8]> = Some(b"unreadable");

/// The place of one check: a folder for tools, one for the subject, and one beside them.
pub(crate) struct World<'s> {
    server: &'s Server,
    /// When its clock begins, in ms since 1970: at no other check's time, of no other run, so that
    /// a log shows whose it is.
    clock: u64,
    /// The prefix on the server of its tools' requests: a late one is not another check's.
    base: String,
    root: PathBuf,
    /// The text that no answer may contain: it lies where no token reaches.
    pub(crate) secret: String,
    /// The entries outside `in` at the start.
    before: BTreeMap<PathBuf, Option<Vec<u8>>>,
    race: Option<Race>,
}

/// Two names that are exchanged, over and over.
struct Race {
    still: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Race {
    fn drop(&mut self) {
        self.still.store(true, Ordering::Release);
        // It exchanges names, and has nothing to panic about.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

impl<'s> World<'s> {
    pub(crate) fn new(root: PathBuf, number: usize, server: &'s Server) -> Result<Self, Fault> {
        let secret = format!("secret-{number}-{}", std::process::id());
        let (base, before) = (format!("/check-{number}"), BTreeMap::new());
        let clock = CLOCK_MS
            .saturating_add(u64::from(std::process::id()).saturating_mul(1_000))
            .saturating_add(u64::try_from(number).unwrap_or(0).saturating_mul(DAY_MS));
        let mut world = Self { server, clock, base, root, secret, before, race: None };
        world.prepare().map_err(harness("the check's folder"))?;
        Ok(world)
    }

    fn prepare(&mut self) -> io::Result<()> {
        for folder in ["files/in", "files/out", "outside", "home", "exports"] {
            fs::create_dir_all(self.root.join(folder))?;
        }
        for file in ["files/out/secret", "outside/secret"] {
            fs::write(self.root.join(file), &self.secret)?;
        }
        self.before = self.beyond()?;
        Ok(())
    }

    pub(crate) fn clock(&self) -> u64 {
        self.clock
    }

    /// The server as the tools of this check know it.
    pub(crate) fn url(&self) -> String {
        format!("{}{}", self.server.url(), self.base)
    }

    fn on_server(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// How often a path was asked for.
    pub(crate) fn hits(&self, path: &str) -> u64 {
        let below = self.server.below(&self.base);
        below.iter().find(|(found, _)| found == path).map_or(0, |(_, hits)| *hits)
    }

    /// How often each path was asked for.
    pub(crate) fn all_hits(&self) -> Vec<(String, u64)> {
        self.server.below(&format!("{}/", self.base))
    }

    /// The sum of the numbers that `count` was called with.
    pub(crate) fn counted(&self) -> u64 {
        let by = |(path, hits): &(String, u64)| {
            Some(path.strip_prefix("count/")?.parse::<u64>().ok()?.saturating_mul(*hits))
        };
        self.all_hits().iter().filter_map(by).fold(0, u64::saturating_add)
    }

    pub(crate) fn hold(&self, path: &str) {
        self.server.hold(&self.on_server(path));
    }

    pub(crate) fn release(&self, path: &str) {
        self.server.release(&self.on_server(path));
    }

    /// Waits until a path was asked for: whether it was.
    pub(crate) fn wait(&self, path: &str, timeout: Duration) -> bool {
        self.server.wait(&self.on_server(path), timeout)
    }

    /// The folder of the tools.
    pub(crate) fn files(&self) -> PathBuf {
        self.root.join("files")
    }

    /// The folder of the subject.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(crate) fn export(&self, name: &str) -> PathBuf {
        self.root.join("exports").join(name)
    }

    /// A place below `files` that the set names.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.files().join(path)
    }

    /// The files and links outside `in`: in `out` and beside the tools' folder. A folder by itself
    /// is no effect of a tool.
    fn beyond(&self) -> io::Result<BTreeMap<PathBuf, Option<Vec<u8>>>> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.files(), self.root.join("outside")];
        while let Some(folder) = open.pop() {
            let Ok(entries) = fs::read_dir(&folder) else {
                found.insert(folder, UNREADABLE.map(<[u8]>::to_vec));
                continue;
            };
            for entry in entries {
                let path = entry?.path();
                let kind = fs::symlink_metadata(&path)?.file_type();
                if path == self.at(IN) {
                    continue;
                }
                let content = match kind.is_file() {
                    true => fs::read(&path).ok().or(UNREADABLE.map(<[u8]>::to_vec)),
                    false => None,
                };
                if kind.is_dir() {
                    open.push(path);
                } else {
                    found.insert(path, content);
                }
            }
        }
        Ok(found)
    }

    /// The first thing outside `in` that is not as it was.
    pub(crate) fn changed(&self) -> Result<Option<String>, Fault> {
        let now = self.beyond().map_err(harness("the check's folder"))?;
        let mut all = now.keys().chain(self.before.keys());
        let first = all.find(|path| now.get(*path) != self.before.get(*path));
        Ok(first.map(|path| path.strip_prefix(&self.root).unwrap_or(path).display().to_string()))
    }

    /// How many files lie in `in`.
    pub(crate) fn files_within(&self) -> Result<u64, Fault> {
        let within = fs::read_dir(self.at(IN)).map_err(harness("the check's folder"))?;
        Ok(u64::try_from(within.count()).unwrap_or(u64::MAX))
    }

    /// True if a file is there, with this text if one is given.
    pub(crate) fn has(&self, path: &str, text: Option<&str>) -> bool {
        let path = self.at(path);
        match text {
            None => fs::symlink_metadata(path).is_ok(),
            Some(text) => fs::read(path).is_ok_and(|found| found == text.as_bytes()),
        }
    }

    /// A text of the set with the places that only the runner knows.
    pub(crate) fn placed(&self, text: &str) -> String {
        let place = |folder: &str| self.root.join(folder).to_string_lossy().into_owned();
        text.replace("{files}", &place("files")).replace("{outside}", &place("outside"))
    }

    pub(crate) fn link(&self, from: &str, to: &str) -> Result<(), Fault> {
        symlink(to, self.at(from)).map_err(harness("a link"))
    }

    pub(crate) fn folder(&self, path: &str) -> Result<(), Fault> {
        fs::create_dir_all(self.at(path)).map_err(harness("a folder"))
    }

    pub(crate) fn put(&self, path: &str, text: &str) -> Result<(), Fault> {
        fs::write(self.at(path), text).map_err(harness("a file"))
    }

    pub(crate) fn hard_link(&self, from: &str, to: &str) -> Result<(), Fault> {
        fs::hard_link(self.at(to), self.at(from)).map_err(harness("a hard link"))
    }

    /// Exchanges two names until the check ends, or [`World::still`].
    pub(crate) fn race(&mut self, one: &str, other: &str) {
        let (one, other) = (self.at(one), self.at(other));
        let still = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&still);
        let exchange = move || {
            while !ends.load(Ordering::Acquire) {
                // A name that is away for a moment is tried again.
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).ok();
            }
        };
        self.race = Some(Race { still, thread: Some(thread::spawn(exchange)) });
    }

    pub(crate) fn still(&mut self) {
        self.race = None;
    }

    /// Cuts bytes off the end of the largest file in the subject's folder.
    pub(crate) fn cut_home(&self, bytes: u64) -> Result<(), Fault> {
        let cut = || {
            let largest = files_below(self.home())?.into_iter().max_by_key(|(size, _)| *size);
            let Some((size, path)) = largest else { return Ok(()) };
            fs::OpenOptions::new().write(true).open(path)?.set_len(size.saturating_sub(bytes))
        };
        cut().map_err(harness("the subject's folder"))
    }
}

/// The regular files in a folder and below it, with their sizes in bytes.
pub(crate) fn files_below(folder: PathBuf) -> io::Result<Vec<(u64, PathBuf)>> {
    let (mut open, mut found) = (vec![folder], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                found.push((entry.metadata()?.len(), path));
            }
        }
    }
    Ok(found)
}

/// True if a path is written plainly: only then does its text show where the file lies.
pub(crate) fn is_plain(path: &str) -> bool {
    let parts = || Path::new(path).components();
    !path.is_empty()
        && parts().all(|part| matches!(part, Component::Normal(_)))
        && path == parts().collect::<PathBuf>().to_string_lossy()
}
