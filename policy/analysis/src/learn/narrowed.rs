//! How much a line of a proposal narrows.

/// How a scope is narrowed, from the narrowest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// To what was touched.
    Touched,
    /// To the deepest folders, or domains, below which enough different things were touched.
    Gathered,
    /// To the deepest folder of each root below which everything lies; of integers, to their
    /// range, with headroom.
    Common,
    /// Not at all.
    Granted,
}

impl Reach {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Touched, Self::Gathered, Self::Common, Self::Granted];

    /// The name for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Touched => "touched",
            Self::Gathered => "gathered",
            Self::Common => "common",
            Self::Granted => "granted",
        }
    }
}

/// How an argument is narrowed, from the narrowest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// It is never given.
    Absent,
    /// It is one of the values that were seen.
    Values,
    /// It is text that begins as one that was seen, up to its last `/`.
    Folder,
    /// It is text that ends as one that was seen, from its `@` on.
    Domain,
    /// It is text that begins as one that was seen, up to the end of its origin
    /// (`https://host/`) or of its first folder.
    Origin,
    /// It is an integer, no more than so many times the greatest seen, and not below 0 where
    /// none was.
    Range,
    /// Anything that the tool takes.
    Free,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Absent,
        Self::Values,
        Self::Folder,
        Self::Domain,
        Self::Origin,
        Self::Range,
        Self::Free,
    ];

    /// The name for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Values => "values",
            Self::Folder => "folder",
            Self::Domain => "domain",
            Self::Origin => "origin",
            Self::Range => "range",
            Self::Free => "free",
        }
    }
}
