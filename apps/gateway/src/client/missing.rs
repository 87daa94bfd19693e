//! Tools that are offered and not shown.

use syscap::format::ToolId;

/// A tool that a server offers and a client is not shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Missing {
    pub(crate) tool: ToolId,
    /// Why it is not shown.
    pub(crate) why: Why,
}

/// Why a tool is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// The token does not grant it.
    NotGranted,
    /// It is not on record, and nobody was there to sign that.
    New,
    /// Another definition is on record.
    Changed,
    /// The home has a tool of that name.
    Taken,
    /// Its server has more than are taken.
    LeftOut,
}

impl Why {
    /// All of them.
    pub(crate) const ALL: [Self; 5] =
        [Self::NotGranted, Self::New, Self::Changed, Self::Taken, Self::LeftOut];

    /// In a word.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::NotGranted => "not_granted",
            Self::New => "new",
            Self::Changed => "changed",
            Self::Taken => "name_taken",
            Self::LeftOut => "left_out",
        }
    }
}
