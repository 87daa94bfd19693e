//! Files that were named and judged before, so that they can be opened without that.
//!
//! An entry of a folder can't be exchanged without changing the folder, and a file never becomes
//! anything else. So where no folder on the way to a file has changed since it was judged, it is
//! still there, and is what it was.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::base::Base;
use super::gate::{Changed, Ident, Node};
use super::homes::{is_settled, now_s};
use super::walk::PASSED;

/// How many folders are held open.
const FOLDERS_MAX: usize = 32;
/// How many names down they may lie: each on the way is held open.
const NAMES_MAX: usize = 4;
/// How many files of a folder are remembered. Past that all are judged again.
const FILES_MAX: usize = 1_024;
/// How often there is no place for a folder before all places are given anew.
const TURNED_AWAY_MAX: u32 = 4_096;

/// The files that were judged, by their folders.
#[derive(Debug, Default)]
pub(super) struct Judged(Mutex<Folders>);

#[derive(Debug, Default)]
struct Folders {
    ways: HashMap<Box<str>, Arc<Way>>,
    turned_away: u32,
}

/// The way to a folder, and the files in it.
#[derive(Debug)]
struct Way {
    /// The folder and those above it, upwards: the base is the last.
    folders: Vec<(OwnedFd, Seen)>,
    files: Mutex<HashMap<Box<str>, Seen>>,
}

/// Which thing it was, and when it had last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    ident: Ident,
    changed: Changed,
}

impl From<&Node> for Seen {
    fn from(node: &Node) -> Self {
        Self { ident: node.ident, changed: node.changed }
    }
}

impl Judged {
    /// The file of that name in the folder at a path, where nothing on the way to it has changed.
    pub(super) fn file(&self, folder: &str, name: &str) -> Option<Seen> {
        let way = Arc::clone(self.folders().ways.get(folder)?);
        let file = *lock(&way.files).get(name)?;
        if way.is_unchanged() {
            return Some(file);
        }
        self.folders().ways.remove(folder);
        None
    }

    /// Remembers a file that was judged in the folder at a path, which was known as
    /// [`Base::known`] has it after the file was named, and was that node then.
    pub(super) fn remember(&self, base: &Base, path: &str, name: &str, folder: &Node, file: &Node) {
        // A number that is free again is given to another file: that is younger.
        if !is_settled(file.changed, now_s()) {
            return;
        }
        if let Some(way) = self.way(base, path).filter(|way| way.is_to(folder)) {
            let mut files = lock(&way.files);
            if files.len() >= FILES_MAX {
                files.clear();
            }
            files.insert(Box::from(name), Seen::from(file));
        }
    }

    fn way(&self, base: &Base, path: &str) -> Option<Arc<Way>> {
        {
            let mut folders = self.folders();
            if let Some(way) = folders.ways.get(path) {
                return Some(Arc::clone(way));
            }
            if folders.ways.len() >= FOLDERS_MAX {
                folders.turned_away += 1;
                if folders.turned_away < TURNED_AWAY_MAX {
                    return None;
                }
                *folders = Folders::default();
            }
        }
        let way = Arc::new(Way::to(base, path)?);
        self.folders().ways.insert(Box::from(path), Arc::clone(&way));
        Some(way)
    }

    fn folders(&self) -> MutexGuard<'_, Folders> {
        lock(&self.0)
    }
}

impl Way {
    /// The way to a folder whose every step is known to be no home, and which is one way: the base
    /// is looked at last, as by [`Base::known`].
    fn to(base: &Base, path: &str) -> Option<Self> {
        let mut opened = vec![base.handle().try_clone_to_owned().ok()?];
        for name in path.split('/').filter(|name| *name != ".") {
            if opened.len() > NAMES_MAX {
                return None;
            }
            let above = opened.last()?;
            opened.push(base.walk(above, name.as_bytes(), PASSED).ok()?);
        }
        let looked = opened.into_iter().rev().map(|fd| {
            let node = Node::of(&fd).ok().filter(|node| base.is_no_home(node))?;
            Some((fd, Seen::from(&node)))
        });
        Some(Self { folders: looked.collect::<Option<_>>()?, files: Mutex::default() })
    }

    fn is_to(&self, folder: &Node) -> bool {
        self.folders.first().is_some_and(|(_, seen)| *seen == Seen::from(folder))
    }

    /// True if all folders are unchanged, the base last: if it did not change, its entry was the
    /// next one all the time, also when that was looked at; and so on down. A mount that covers one
    /// does not show here: no walk goes into it.
    fn is_unchanged(&self) -> bool {
        self.folders
            .iter()
            .all(|(fd, seen)| Node::of(fd.as_fd()).is_ok_and(|now| Seen::from(&now) == *seen))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
