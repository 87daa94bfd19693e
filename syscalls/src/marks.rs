//! Marks: what a command does beside reading and writing files.

use std::collections::BTreeSet;

use crate::auto_executed::{Kind, kinds_of_path};

/// A mark: an effect of a command that neither its files nor its hosts show; a name of the
/// dimension `does`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// It can't be told what it does.
    Unknown,
    /// It runs code of the project's: its build, its tests, its hooks. That can do anything.
    ProjectCode,
    /// It removes something irrecoverably.
    Irreversible,
    /// It reaches a host that can't be told.
    Network,
    /// It writes what runs elsewhere on its own: a forge's workflows.
    Automation,
    /// It hides what it does, or plants what does something later.
    Hides,
}

impl Mark {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Unknown,
        Self::ProjectCode,
        Self::Irreversible,
        Self::Network,
        Self::Automation,
        Self::Hides,
    ];

    /// Its name in grants and policies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::ProjectCode => "project_code",
            Self::Irreversible => "irreversible",
            Self::Network => "network",
            Self::Automation => "automation",
            Self::Hides => "hides",
        }
    }

    /// The argument of a call that policies ask for it by.
    pub const fn argument(self) -> &'static str {
        match self {
            Self::Unknown => "does_unknown",
            Self::ProjectCode => "does_project_code",
            Self::Irreversible => "does_irreversible",
            Self::Network => "does_network",
            Self::Automation => "does_automation",
            Self::Hides => "does_hides",
        }
    }
}

/// The marks of a write to this path, by [`kinds_of_path`]: [`Mark::Hides`] where other programs
/// execute or obey it, [`Mark::Automation`] where a forge runs it. Instructions of agents have no
/// mark.
pub fn write_marks<'a>(components: impl IntoIterator<Item = &'a str>) -> BTreeSet<Mark> {
    let mark = |kind| match kind {
        Kind::Settings => Some(Mark::Hides),
        Kind::Automation => Some(Mark::Automation),
        Kind::Instructions => None,
    };
    kinds_of_path(components).into_iter().filter_map(mark).collect()
}
