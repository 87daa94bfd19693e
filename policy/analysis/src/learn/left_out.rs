//! The calls that are not in a proposal, and the reasons.

use alloc::{collections::BTreeMap, vec::Vec};

use syscap_format::{AgentId, Reason, Seq, ToolId};

use super::recording::Observation;

/// Why a call, or a tool, is not in a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It was refused.
    Refused(Reason),
    /// Its run failed: it shows what was tried, not what is needed.
    Failed,
    /// It brought a result in which its tool says that it failed.
    ToolFailed,
    /// Its outcome is not on record.
    Open,
    /// Its session had been given a stranger's word, and it goes beyond what other calls show.
    Untrusted,
    /// Its arguments were erased.
    Erased,
    /// The vault has other arguments than its record commits to.
    Altered,
    /// Its tool is another by now.
    ToolChanged,
    /// The newest token of the recording grants less.
    BeyondToken,
    /// The token of the recording grants it, and nobody called it.
    NeverCalled,
}

impl Why {
    /// The name for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Failed => "failed",
            Self::ToolFailed => "tool_failed",
            Self::Open => "open",
            Self::Untrusted => "untrusted",
            Self::Erased => "erased",
            Self::Altered => "altered",
            Self::ToolChanged => "tool_changed",
            Self::BeyondToken => "beyond_token",
            Self::NeverCalled => "never_called",
        }
    }
}

/// Calls, or a tool, that are not in a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The agent.
    pub agent: AgentId,
    /// The tool.
    pub tool: ToolId,
    /// Why.
    pub why: Why,
    /// How many calls.
    pub calls: u64,
    /// The first ones' records, at most [`LEFT_OUT_LISTED`].
    pub records: Vec<Seq>,
}

/// Most records that are named of one line of what is left out.
pub const LEFT_OUT_LISTED: usize = 8;

/// The calls left out, once for each agent, tool and reason.
pub(super) type LeftOuts = BTreeMap<(AgentId, ToolId, Why), LeftOut>;

/// Counts a call that is left out.
pub(super) fn leave_out(
    left_out: &mut LeftOuts,
    agent: &AgentId,
    observation: &Observation,
    why: Why,
) {
    let key = (agent.clone(), observation.tool.clone(), why);
    let entry = left_out.entry(key).or_insert_with(|| LeftOut {
        agent: agent.clone(),
        tool: observation.tool.clone(),
        why,
        calls: 0,
        records: Vec::new(),
    });
    if entry.records.len() < LEFT_OUT_LISTED {
        entry.records.push(observation.seq);
    }
    entry.calls = entry.calls.saturating_add(1);
}
