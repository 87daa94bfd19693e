//! The recording, as the learner is given it.

use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

use syscap_format::{
    AgentId, Amounts, Budget, Canonical, Grants, Manifest, Reason, Seq, TokenId, ToolId,
};
use syscap_kernel::Demand;

/// Recorded calls, and what they were made with.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The calls, in the order of their records.
    pub calls: Vec<Observation>,
    /// The sessions, by number.
    pub sessions: BTreeMap<Seq, RecordedSession>,
    /// The tokens that sessions were opened with.
    pub tokens: BTreeMap<TokenId, Authority>,
    /// The tools on record at the end.
    pub tools: Vec<Manifest>,
    /// The sessions' payments besides their calls: changes of state, usage that the host posted.
    pub charges: Vec<Paid>,
}

impl Recording {
    /// True if an agent called a tool at all, with any outcome.
    pub(super) fn was_called(&self, agent: &AgentId, tool: &ToolId) -> bool {
        let is_its = |session| self.sessions.get(session).is_some_and(|one| one.agent == *agent);
        self.calls.iter().any(|call| call.tool == *tool && is_its(&call.session))
    }
}

/// One recorded call: an intent with what came of it, or a refusal.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The record that holds the decision.
    pub seq: Seq,
    /// The session.
    pub session: Seq,
    /// The tool.
    pub tool: ToolId,
    /// Its manifest at that time; `None` where the home has lost it.
    pub manifest: Option<Arc<Manifest>>,
    /// The resolved arguments, or why they are not known.
    pub args: Result<Canonical, Lost>,
    /// The resources that the call touched.
    pub touched: Touched,
    /// How it ended.
    pub ended: Ended,
    /// The context of its session before.
    pub context: Context,
    /// The amounts reserved.
    pub held: Amounts,
    /// The amounts used.
    pub used: Amounts,
}

/// Why the arguments of a call are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lost {
    /// They were erased, or never kept.
    Erased,
    /// The vault has others than its record commits to.
    Altered,
}

/// The resources that a call touched.
#[derive(Clone, Debug)]
pub enum Touched {
    /// This.
    Known(Vec<Demand>),
    /// Only its tool could say, and that is not here.
    Unknown,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// It brought a result.
    Done,
    /// Its run failed, or was given up.
    Failed,
    /// It brought a result in which the tool itself says that it failed.
    ToolFailed,
    /// Nothing ran.
    Refused(Reason),
    /// There is no outcome on record.
    Open,
}

/// The context of a session before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Context {
    /// Only content that the operator vouches for.
    Trusted,
    /// A stranger's word: the call may be what the stranger wants.
    Untrusted,
}

/// A session, as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedSession {
    /// The agent.
    pub agent: AgentId,
    /// The token by which it was opened.
    pub token: TokenId,
    /// Its task, if the operator says how to tell: sessions of the same agent for the same task are
    /// no independent evidence. `None` where it stands for itself.
    pub task: Option<Vec<u8>>,
}

/// A token's grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The record that registered it.
    pub issued: Seq,
    /// The tools and their scopes.
    pub grants: Grants,
    /// How much in all.
    pub budget: Budget,
}

/// A session's payment besides its calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paid {
    /// The session.
    pub session: Seq,
    /// The record.
    pub seq: Seq,
    /// How much.
    pub amounts: Amounts,
}
