//! What the analysis must know of the machine.

use std::collections::{BTreeMap, BTreeSet};

use crate::area::{Absolute, Base};

/// Where a command would run. What is not said here is unknown.
#[derive(Clone, Debug, Default)]
pub struct Place {
    pub(crate) base: Option<Base>,
    /// The folder that `~` stands for.
    pub home: Option<String>,
    /// The folders of `PATH`, in their real form, in order.
    pub search: Vec<String>,
    /// Programs by name, and the file that `PATH` finds for each: in a folder of `search`, or
    /// where a link there leads.
    pub found: BTreeMap<String, String>,
    /// Folders in which an agent may write: a program from there is not the one of its name.
    pub writable: BTreeSet<String>,
    /// The repository that git finds in the folder.
    pub repository: Repository,
}

/// What git would do in a repository beside what it is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Repository {
    /// Nobody has looked: hooks, filters and helpers may run.
    #[default]
    Unknown,
    /// Its own configuration runs nothing, it has no hooks, and it begins in this folder.
    Plain(String),
}

impl Place {
    /// A folder by its real absolute path: no link, and nothing relative in it.
    #[must_use]
    pub fn at(folder: &str) -> Option<Self> {
        let base = Base::reported(Absolute::plain(folder)?);
        Some(Self { base: Some(base), ..Self::default() })
    }

    /// Where a program of that name comes from.
    pub(crate) fn program(&self, name: &str) -> Origin {
        let Some(file) = self.found.get(name).and_then(|file| Absolute::plain(file)) else {
            return Origin::Unknown;
        };
        let writable: Vec<Absolute> =
            self.writable.iter().filter_map(|folder| Absolute::plain(folder)).collect();
        if writable.len() < self.writable.len() || self.search.is_empty() {
            return Origin::Unknown;
        }
        let own = |path: &Absolute| writable.iter().any(|folder| path.is_within(folder));
        if own(&file) {
            return Origin::Writable;
        }
        for folder in &self.search {
            match Absolute::plain(folder) {
                None => return Origin::Unknown,
                // Something may be put there that is found first.
                Some(folder) if own(&folder) => return Origin::Writable,
                Some(folder) if folder == file.parent() => return Origin::System,
                Some(_) => {}
            }
        }
        // Found through a link: no folder that is looked through can be written to.
        Origin::System
    }

    /// Whether a program of that name may be an agent's. One that is not found is nobody's, unless
    /// an agent could put it there.
    pub(crate) fn may_be_agents(&self, name: &str) -> bool {
        match self.program(name) {
            Origin::System => false,
            Origin::Writable => true,
            Origin::Unknown if self.found.contains_key(name) => true,
            Origin::Unknown => {
                let own: Option<Vec<Absolute>> =
                    self.writable.iter().map(|folder| Absolute::plain(folder)).collect();
                let Some(own) = own.filter(|_| !self.search.is_empty()) else { return true };
                self.search.iter().any(|folder| {
                    Absolute::plain(folder)
                        .is_none_or(|folder| own.iter().any(|own| folder.is_within(own)))
                })
            }
        }
    }
}

/// Where a program comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    System,
    Writable,
    Unknown,
}
