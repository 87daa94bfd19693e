//! The operator's settings.

use alloc::vec::Vec;

use syscap_format::{AgentId, Manifest, ToolId};

/// How to learn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The agents to learn for; all where none is named.
    pub agents: Vec<AgentId>,
    /// The largest share of tasks like the recorded ones, in percent, that may be refused something
    /// because of all narrowing.
    pub refused_percent: u64,
    /// How many times the most that was seen a number may be.
    pub headroom: u64,
    /// For how many sessions the budget is to last.
    pub sessions: u64,
    /// How many different files below a folder make a folder of them.
    pub files_min: usize,
    /// Tools to grant although nobody called them.
    pub allow: Vec<Allowed>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            agents: Vec::new(),
            refused_percent: 5,
            headroom: 2,
            sessions: 1,
            files_min: 3,
            allow: Vec::new(),
        }
    }
}

/// Tools that the operator names. They are granted as far as the token of the recording has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// This one.
    Tool(ToolId),
    /// The read-only tools below a name.
    ReadsBelow(ToolId),
}

impl Allowed {
    /// Reads `bank.pay` or `bank.*`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix(".*") {
            Some(name) => ToolId::new(name).map(Self::ReadsBelow),
            None => ToolId::new(text).map(Self::Tool),
        }
    }

    /// True if it names a tool.
    #[must_use]
    pub fn names(&self, manifest: &Manifest) -> bool {
        match self {
            Self::Tool(tool) => *tool == manifest.tool,
            Self::ReadsBelow(name) => {
                let rest = manifest.tool.as_str().strip_prefix(name.as_str());
                manifest.effect.is_read_only() && rest.is_some_and(|rest| rest.starts_with('.'))
            }
        }
    }
}
