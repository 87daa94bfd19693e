//! Presets: policies to begin with.

use core::fmt;

use crate::document::{Constraint, Effect, LoadError, Subject};
use crate::engine::Policy;

/// A policy to begin with. Its document is an ordinary one: take it, and change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preset {
    /// Reads and local writes inside the capability run, writes elsewhere ask unless
    /// `auto_approve` names the tool, what can't be undone asks for elevated approval.
    Standard,
    /// Reads run, reads elsewhere ask, nothing is written.
    ReadOnly,
    /// As [`Preset::Standard`] for files; `.git` at the top of `workspace` and `shared` is not
    /// written, what runs elsewhere on its own asks there, nothing that can't be undone.
    Coder,
    /// Reads everywhere, notes below `workspace` and `shared/notes`.
    Researcher,
    /// Drafts are made; mail to people who are not in `recipients` asks.
    Mailer,
    /// Every call inside the capability runs. For a recording to learn from, and nothing else.
    Recording,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Standard,
        Self::ReadOnly,
        Self::Coder,
        Self::Researcher,
        Self::Mailer,
        Self::Recording,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::ReadOnly => "read-only",
            Self::Coder => "coder",
            Self::Researcher => "researcher",
            Self::Mailer => "mailer",
            Self::Recording => "recording",
        }
    }

    /// The preset of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// Its document, as JSON.
    pub const fn document(self) -> &'static str {
        match self {
            Self::Standard => include_str!("../presets/standard.json"),
            Self::ReadOnly => include_str!("../presets/read-only.json"),
            Self::Coder => include_str!("../presets/coder.json"),
            Self::Researcher => include_str!("../presets/researcher.json"),
            Self::Mailer => include_str!("../presets/mailer.json"),
            Self::Recording => include_str!("../presets/recording.json"),
        }
    }

    /// Its table tests, as JSON.
    pub const fn table(self) -> &'static str {
        match self {
            Self::Standard => include_str!("../presets/standard.tests.json"),
            Self::ReadOnly => include_str!("../presets/read-only.tests.json"),
            Self::Coder => include_str!("../presets/coder.tests.json"),
            Self::Researcher => include_str!("../presets/researcher.tests.json"),
            Self::Mailer => include_str!("../presets/mailer.tests.json"),
            Self::Recording => include_str!("../presets/recording.tests.json"),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Policy {
    /// The policy of a preset.
    ///
    /// # Errors
    /// None: a test loads each of them.
    pub fn preset(preset: Preset) -> Result<Self, LoadError> {
        Self::from_json(preset.document().as_bytes())
    }

    /// True for a recording: the constraint of [`Preset::Recording`], which allows every call, is
    /// one of its own.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        let all = |constraint: &Constraint| {
            constraint.id.as_str() == Self::RECORDS
                && constraint.effect == Effect::Allow
                && constraint.subject == Subject::All
        };
        self.written().constraints.iter().any(all)
    }

    /// The constraint that makes a policy a recording.
    const RECORDS: &str = "recording";
}
