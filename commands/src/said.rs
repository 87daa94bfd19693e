//! What is said of a command.

use std::collections::BTreeSet;

pub use syscap_syscalls::marks::Mark;

use crate::{area::Area, limits::REASONS_MAX, moved::Moved};

/// What a command would run and touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Its simple commands, in the order in which they stand; those of substitutions before the
    /// command that they are part of.
    pub commands: Vec<Simple>,
    /// Files and folders that it reads.
    pub reads: BTreeSet<Area>,
    /// Files and folders that it makes, changes or removes.
    pub writes: BTreeSet<Area>,
    /// Folders whose repository git changes.
    pub repositories: BTreeSet<Area>,
    /// Programs that it runs, by name.
    pub programs: BTreeSet<String>,
    /// Subcommands of those that have some: `git push`.
    pub subcommands: BTreeSet<String>,
    /// Hosts that it reaches, by name.
    pub hosts: BTreeSet<String>,
    /// What else it does.
    pub marks: BTreeSet<Mark>,
    /// Programs whose files must be known: what a [`Place`](crate::Place) must tell of.
    pub needs: BTreeSet<String>,
    /// Why, for people: what could not be told first.
    pub reasons: Vec<String>,
    pub(crate) outside: Outside,
    pub(crate) moved: Moved,
    /// How often the bodies of loops were read for a value of their own.
    pub(crate) rounds: usize,
}

/// What a command does to the world, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It reads files.
    Read,
    /// It changes files.
    LocalWrite,
    /// It reads from elsewhere, and changes no files.
    ExternalRead,
    /// It may change something elsewhere, or anything.
    ExternalWrite,
}

/// A simple command: a program and what it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simple {
    /// The words, the program first.
    pub words: Vec<Piece>,
    /// Names of variables that are set for it.
    pub assignments: Vec<String>,
    /// Where its input and output go.
    pub redirects: Vec<Redirect>,
    /// Whether another command's output is its input.
    pub piped: bool,
    /// Whether it runs while others go on.
    pub background: bool,
    /// In how many substitutions, wrappers and `sh -c` it stands.
    pub depth: usize,
}

/// A word, as far as it can be told before the shell runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// This text.
    Literal(String),
    /// Names in that folder or below it, as the command wrote it: a pattern. Or nothing of them,
    /// and then the pattern's own text.
    Pattern {
        /// The folder, as written; empty for the folder that the command is in.
        folder: String,
        /// Whether a name could be taken for an option.
        dash: bool,
        /// What each begins with, where that is the beginning of a long option: `--include=`.
        option: String,
        /// Whether it is one of them, and nothing else: what a loop's variable holds.
        one: bool,
    },
    /// One text.
    One,
    /// Any number of texts.
    Many,
    /// What another command writes, or reads: `<(..)`.
    Stream,
}

/// A redirection to or from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The file.
    pub file: Piece,
    /// Whether it is read.
    pub reads: bool,
    /// Whether it is written to.
    pub writes: bool,
    /// Whether what it holds stays.
    pub appends: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outside {
    #[default]
    Nothing,
    Reads,
    Writes,
}

impl Said {
    /// What it does to the world, at most.
    #[must_use]
    pub fn effect(&self) -> Effect {
        // A policy that knows nothing of marks must not take these for a plain change of files.
        let anything =
            [Mark::Unknown, Mark::ProjectCode, Mark::Irreversible, Mark::Automation, Mark::Hides];
        let changes = !self.writes.is_empty() || !self.repositories.is_empty();
        match self.outside {
            _ if anything.iter().any(|mark| self.marks.contains(mark)) => Effect::ExternalWrite,
            Outside::Writes => Effect::ExternalWrite,
            // No one class says both.
            Outside::Reads if changes => Effect::ExternalWrite,
            Outside::Reads => Effect::ExternalRead,
            Outside::Nothing if self.reaches() => Effect::ExternalWrite,
            Outside::Nothing if changes => Effect::LocalWrite,
            Outside::Nothing => Effect::Read,
        }
    }

    fn reaches(&self) -> bool {
        !self.hosts.is_empty() || self.marks.contains(&Mark::Network)
    }

    /// Whether all that it does is told.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !self.marks.contains(&Mark::Unknown)
    }

    pub(crate) fn mark(&mut self, mark: Mark, why: impl Into<String>) {
        self.marks.insert(mark);
        let why = format!("{}: {}", mark.name(), why.into());
        if self.reasons.len() < REASONS_MAX && !self.reasons.contains(&why) {
            self.reasons.push(why);
        }
    }
}
