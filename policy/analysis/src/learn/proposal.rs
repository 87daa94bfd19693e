//! The learner's proposal.

use alloc::{boxed::Box, vec::Vec};

use syscap_format::{
    AgentId, Budget, Canonical, Dimension, EffectClass, Grants, Scope, Seq, TokenId, ToolId,
};
use syscap_policy::{Condition, Policy};

use super::budgeted::least_percent;
use super::document;
use super::left_out::LeftOut;
use super::narrowed::{Class, Reach};

/// A token for each agent and one policy, each line with its evidence, and what was left out.
#[derive(Debug)]
pub struct Proposal {
    /// The tokens.
    pub agents: Vec<ForAgent>,
    /// The policy: what is said of the agents above, and nothing else. It denies all others.
    pub policy: Policy,
    /// The calls left out, sorted by agent, tool and reason.
    pub left_out: Vec<LeftOut>,
}

/// A token for one agent.
#[derive(Clone, Debug)]
pub struct ForAgent {
    /// The agent.
    pub agent: AgentId,
    /// The newest token of the recording: nothing here is wider.
    pub ceiling: TokenId,
    /// The tools and their scopes.
    pub grants: Grants,
    /// How much in all.
    pub budget: Budget,
    /// The lines of the tools, in the order in which they were decided: the riskiest first.
    pub tools: Vec<ToolLine>,
    /// Why the budget is what it is.
    pub limits: Vec<LimitLine>,
    /// How much evidence there is.
    pub seen: Support,
    /// Tasks that would be refused something if they were left out of the evidence, because
    /// only they show what they need of a tool that others call too.
    pub refused: usize,
    /// Tasks that are the only ones to call some tool: how often the next task will need a tool
    /// that was never seen.
    pub alone_with_a_tool: usize,
}

/// How much evidence there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Support {
    /// Calls.
    pub calls: usize,
    /// Sessions that they were made in.
    pub sessions: usize,
    /// The number of tasks: independent pieces of evidence.
    pub tasks: usize,
}

/// The line of one tool.
#[derive(Clone, Debug)]
pub struct ToolLine {
    /// The tool.
    pub tool: ToolId,
    /// The effect class.
    pub effect: EffectClass,
    /// The evidence; none where the operator named it.
    pub seen: Support,
    /// Calls that count only because they lie inside what the others show.
    pub confirmed: usize,
    /// Its scopes.
    pub scopes: Vec<ScopeLine>,
    /// Its arguments; none of a tool that only reads.
    pub arguments: Vec<ArgumentLine>,
}

/// Why a scope is what it is.
#[derive(Clone, Debug)]
pub struct ScopeLine {
    /// The dimension.
    pub dimension: Box<str>,
    /// How it was narrowed.
    pub reach: Reach,
    /// The scope.
    pub scope: Scope,
    /// How many different resources were touched.
    pub resources: usize,
    /// Tasks that alone would be refused by it if they were left out.
    pub alone: usize,
    /// Narrower ways, with the tasks that alone would be refused by them.
    pub tried: Vec<(Reach, usize)>,
}

/// Why an argument is held to what it is held to.
#[derive(Clone, Debug)]
pub struct ArgumentLine {
    /// The argument.
    pub name: Box<str>,
    /// How it was narrowed.
    pub class: Class,
    /// The required condition; `None` if there is none.
    pub condition: Option<Condition>,
    /// How many different values it had; of a list, its elements'.
    pub values: usize,
    /// Tasks that alone show a value of the class.
    pub alone: usize,
    /// Narrower classes, with the tasks that alone show a value of them; `None` where the class
    /// can't say what was seen.
    pub tried: Vec<(Class, Option<usize>)>,
}

impl ForAgent {
    /// The least bound, in percent, for which there are tasks enough to narrow any argument.
    pub fn least_percent(&self) -> u64 {
        least_percent(self.seen.tasks)
    }
}

impl ArgumentLine {
    /// The required condition, as the policy's document writes it; null if there is none.
    pub fn written(&self) -> Canonical {
        self.condition.as_ref().map_or_else(Canonical::null, document::condition)
    }
}

/// Why a limit is what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitLine {
    /// The dimension.
    pub dimension: Dimension,
    /// The limit.
    pub limit: u64,
    /// The most that a session needed, and which; `None` where none needed any.
    pub most: Option<(u64, Seq)>,
}
