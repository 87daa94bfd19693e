//! Homes of syscap among the files: folders with a log and keys, in which nothing is opened.
//!
//! A granted root can be a home, hold one, or become one while it is open. So every folder that a
//! walk passes is looked at, whatever a token says of it.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use rustix::io::{pread, retry_on_intr};
use rustix::time::{ClockId, clock_gettime};
use syscap_format::Role;

use super::error::FsError;
use super::gate::{Changed, Ident, Node};
use super::walk::{READ, Walk};

/// The log of a home. Any entry of this name marks its folder: a home without it can't exist, and
/// to look into it would drop the locks of a process that has it open.
const LOG: &str = "home.db";
/// The folder of a home that holds its keys, where they don't lie elsewhere. The name alone marks
/// nothing: many projects have such a folder. It does with a role's key in it.
const KEYS: &str = "keys";
/// The suffixes of a key file's name: usual, waiting, and in the making.
const KEY_SUFFIXES: [&str; 4] = [".key", ".key.next", ".key.part", ".part"];
/// The uses of the keys that are no role's.
const OTHERS: [&str; 3] = ["recovery", "holder", "secrets"];
/// How every key file begins, sealed or not: a canonical map of five entries, the shortest name
/// first. A file of such a name that begins otherwise is a project's own, as PEM is; an empty one
/// that is named for a use is a key that is being written.
pub const KEY_FILE_BEGINS: [u8; 5] = *b"\xa5\x63use";

/// How long a folder must have been as it is for a look at it to be remembered: two changes within
/// one tick of the file system's clock leave one time. So whatever changes after the look shows.
const SETTLED_S: i64 = 2;
/// How many folders are remembered. Past that all are looked at again.
const SEEN_MAX: usize = 4_096;

/// The folders that were looked at, and are no homes.
#[derive(Debug)]
pub(super) struct Homes {
    walk: Walk,
    seen: Mutex<HashMap<Ident, Seen>>,
}

/// A folder as it was when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    changed: Changed,
    /// The folder in it that is called [`KEYS`]: what comes into that does not change this one.
    keys: Option<(Ident, Changed)>,
}

impl Homes {
    /// None were looked at yet; keys are, by that way.
    pub(super) fn over(walk: Walk) -> Self {
        Self { walk, seen: Mutex::default() }
    }

    /// Checks that a folder is no home. One that did not change since is not looked at again.
    pub(super) fn expect_none(&self, dir: impl AsFd, node: &Node) -> Result<(), FsError> {
        self.expect_none_at(dir, node, now_s)
    }

    fn expect_none_at(
        &self,
        dir: impl AsFd,
        node: &Node,
        now_s: impl FnOnce() -> i64,
    ) -> Result<(), FsError> {
        let known = self.known(node);
        if known.is_some_and(|seen| seen.keys.is_none()) {
            return Ok(());
        }
        let keys = Node::at(&dir, KEYS)?.filter(Node::is_directory);
        let seen =
            Seen { changed: node.changed, keys: keys.map(|keys| (keys.ident, keys.changed)) };
        if known == Some(seen) {
            return Ok(());
        }
        if Node::at(&dir, LOG)?.is_some()
            || (keys.is_some() && holds_key(self.walk, &dir, "keys/")?)
        {
            return Err(FsError::Home);
        }
        self.remember(node.ident, seen, now_s());
        Ok(())
    }

    /// True if an entry is a folder that is known to be no home without a further look.
    pub(super) fn knows(&self, node: &Node) -> bool {
        node.is_directory() && self.known(node).is_some_and(|seen| seen.keys.is_none())
    }

    fn known(&self, node: &Node) -> Option<Seen> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&node.ident).filter(|seen| seen.changed == node.changed).copied()
    }

    fn remember(&self, ident: Ident, seen: Seen, now_s: i64) {
        let settled = |changed: Changed| is_settled(changed, now_s);
        if !settled(seen.changed) || seen.keys.is_some_and(|(_, changed)| !settled(changed)) {
            return;
        }
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SEEN_MAX {
            all.clear();
        }
        all.insert(ident, seen);
    }
}

/// The clock that the file system's times are of, where there is one of its own.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
const CLOCK: ClockId = ClockId::RealtimeCoarse;
/// The clock that the file system's times are of, where there is one of its own.
#[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
const CLOCK: ClockId = ClockId::Realtime;

/// The second that it is, by the file system's clock.
pub(super) fn now_s() -> i64 {
    clock_gettime(CLOCK).tv_sec
}

/// True if a change lies back so far that another one would show.
pub(super) const fn is_settled(changed: Changed, now_s: i64) -> bool {
    changed.is_before(now_s.saturating_sub(SETTLED_S))
}

/// True if a name marks a home wherever it stands: no call may open or make it.
pub(super) fn is_mark(name: &str) -> bool {
    name.eq_ignore_ascii_case(LOG)
}

/// True if a file of this name and content would be a key. It is none to open or to make, whatever
/// folder it lies in.
pub(super) fn is_key(name: &str, content: &[u8]) -> bool {
    // Nothing of it may be there yet; of another name than a home's keys that says nothing.
    let is_begun = || KEY_FILE_BEGINS.starts_with(content) && is_named_for_a_use(name);
    may_be_key(name) && (content.starts_with(&KEY_FILE_BEGINS) || is_begun())
}

/// That an open file of this name is no key.
pub(super) fn expect_no_key(name: &str, fd: impl AsFd) -> Result<(), FsError> {
    if !may_be_key(name) {
        return Ok(());
    }
    let mut bytes = [0; KEY_FILE_BEGINS.len()];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let at = u64::try_from(filled).unwrap_or(u64::MAX);
        match retry_on_intr(|| pread(&fd, &mut *rest, at))? {
            0 => break,
            count => filled = filled.saturating_add(count),
        }
    }
    if is_key(name, bytes.get(..filled).unwrap_or(&bytes)) { Err(FsError::Home) } else { Ok(()) }
}

/// True if a folder holds a key, by names that begin so. An unreadable entry, such as another
/// user's, counts as a key.
pub(super) fn holds_key(walk: Walk, dir: impl AsFd, begin: &str) -> Result<bool, FsError> {
    for name in uses().map(|key_use| format!("{key_use}.key")) {
        let path = format!("{begin}{name}");
        if !Node::at(&dir, path.as_str())?.is_some_and(|node| node.is_file()) {
            continue;
        }
        let looked =
            walk.open(&dir, path.as_bytes(), READ).and_then(|fd| expect_no_key(&name, &fd));
        match looked {
            Ok(()) | Err(FsError::NotFound | FsError::Link) => {}
            Err(_) => return Ok(true),
        }
    }
    Ok(false)
}

/// True if the content of a file of this name must be checked: it may be a key. A file system that
/// folds letters may open one by a name that is not ASCII (the Kelvin sign is a `k` to it): of
/// those what was opened says it, and not the name.
pub(super) fn may_be_key(name: &str) -> bool {
    stem(name).is_some() || !name.is_ascii()
}

fn is_named_for_a_use(name: &str) -> bool {
    stem(name).is_some_and(|stem| uses().any(|known| stem.eq_ignore_ascii_case(known)))
}

/// The name before the suffix of a key. Large letters and small ones are the same to some file
/// systems.
fn stem(name: &str) -> Option<&str> {
    KEY_SUFFIXES.iter().find_map(|suffix| {
        let (stem, end) = name.split_at_checked(name.len().checked_sub(suffix.len())?)?;
        end.eq_ignore_ascii_case(suffix).then_some(stem)
    })
}

fn uses() -> impl Iterator<Item = &'static str> {
    Role::ALL.iter().map(|role| role.name()).chain(OTHERS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    use rustix::fs::{CWD, Mode, OFlags};

    /// A folder that did not change is looked at once, and again after each change; one that just
    /// changed is not remembered, nor is one whose keys just did.
    #[test]
    fn a_folder_is_looked_at_again_when_it_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let open = OFlags::PATH | OFlags::DIRECTORY;
        let dir = rustix::fs::openat(CWD, folder.path(), open, Mode::empty()).unwrap();
        let homes = Homes::over(Walk::by_cap_std(&dir).unwrap());
        let node = || Node::of(&dir).unwrap();
        let now = clock_gettime(ClockId::Realtime).tv_sec;
        let is_remembered = |later: i64| {
            homes.expect_none_at(&dir, &node(), || now + later).unwrap();
            homes.known(&node()).is_some()
        };
        assert!(!is_remembered(0));
        assert!(!is_remembered(-100), "a clock that was set back");
        assert!(is_remembered(100));
        // Nobody asks for the time: nothing is looked at.
        homes.expect_none_at(&dir, &node(), || panic!("looked at again")).unwrap();
        fs::create_dir(folder.path().join("keys")).unwrap();
        assert!(homes.known(&node()).is_none());
        assert!(is_remembered(100));
        homes.expect_none_at(&dir, &node(), || panic!("looked at again")).unwrap();
        // The folder itself does not change.
        fs::write(folder.path().join("keys/policy.key"), KEY_FILE_BEGINS).unwrap();
        assert!(homes.known(&node()).is_some());
        let seen = homes.expect_none_at(&dir, &node(), || now + 100);
        assert_eq!(seen, Err(FsError::Home));
        fs::remove_file(folder.path().join("keys/policy.key")).unwrap();
        assert!(is_remembered(100));
        fs::write(folder.path().join("home.db"), "").unwrap();
        let seen = homes.expect_none_at(&dir, &node(), || now + 100);
        assert_eq!(seen, Err(FsError::Home));
    }
}
