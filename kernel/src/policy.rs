//! The policy engine's side of a call: the question and the decision.

use alloc::{boxed::Box, vec::Vec};

use crate::{history::Told, tool::Demand};
use syscap_format::{
    AgentId, Amounts, ApprovalChannel, Decision, EffectClass, EngineIdentity, Facts, Item,
    Manifest, PolicyObject, PublicKey, Source, TokenBody, TokenId, ToolGrant, ToolId, UnixMillis,
};

/// The advice to a caller after a refusal by policy, so that it can repair the call. It is
/// delivered and not recorded, and holds nothing but what the policy's author wrote for callers and
/// what an allow asks of an argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// The argument that could be changed; `None` where no argument would help.
    pub argument: Option<Box<str>>,
    /// The allowed values there, or the policy author's text.
    pub allowed: Option<Box<str>>,
}

/// The approvers of calls that need a level, and their channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The keys that count, of those of the approvers.
    pub keys: Vec<PublicKey>,
    /// How many of them must approve, where the role asks for fewer.
    pub approvals: u64,
    /// The means that count, of those that do otherwise.
    pub means: Vec<ApprovalChannel>,
}

/// A question to a policy. All of it is the kernel's own: nothing here can be handed in.
#[derive(Debug)]
pub struct Question<'a> {
    /// The calling agent.
    pub agent: &'a AgentId,
    /// The token.
    pub token: TokenId,
    /// The token's body.
    pub body: &'a TokenBody,
    /// The token's grant for this tool.
    pub grant: &'a ToolGrant,
    /// The tool's manifest.
    pub manifest: &'a Manifest,
    /// The effect class of this very call: the manifest's class, or less.
    pub effect: EffectClass,
    /// The resolved arguments after defaults.
    pub args: Item<'a>,
    /// The resources that the plan would touch.
    pub demands: &'a [Demand],
    /// A resource by which the tool describes the call besides, under a name of its own.
    pub described: Option<&'a Demand>,
    /// The amounts that the plan would reserve.
    pub hold: &'a Amounts,
    /// The rest of the budget, the tightest of the token's chain.
    pub left: &'a Amounts,
    /// The agent's recent calls, without this one.
    pub history: Told<'a>,
    /// The facts of the agent's head snapshot.
    pub facts: &'a Facts,
    /// The source of the call, as the host states it; the caller's own claim is not part of the
    /// question.
    pub source: Source,
    /// Kernel time.
    pub now: UnixMillis,
}

/// The sole authority for approval. Pure and total: the same question, the same answer; no
/// clock, no I/O, no panic. The kernel asks its own engine; a [`Decision`] made elsewhere can't
/// be passed in.
pub trait PolicyEngine: Send {
    /// The engine's name and semantic version: part of the policy's hash.
    fn identity(&self) -> EngineIdentity;
    /// The canonical document: part of the policy's hash.
    fn document(&self) -> Vec<u8>;
    /// The verdict.
    fn decide(&self, question: &Question<'_>) -> Decision;
    /// The tools that the policy names. The kernel takes no policy that names one by an alias:
    /// calls are decided under the tool's own id, and what is said of the alias would be lost.
    fn tools(&self) -> Vec<ToolId> {
        Vec::new()
    }
    /// The approvers of that level: read for calls that wait for a person of it. `None` where the
    /// policy names nobody; then such a call is refused. For the level `client` only the channels
    /// are read, of any call: those that count, where others than usual do.
    fn level(&self, _name: &str) -> Option<Level> {
        None
    }
    /// The advice to the caller of a call that is not allowed. Asked for refusals only.
    fn advise(&self, _question: &Question<'_>, _decision: &Decision) -> Advice {
        Advice::default()
    }
}

/// The object that an engine stands for.
#[must_use]
pub fn object_of(engine: &dyn PolicyEngine) -> PolicyObject {
    PolicyObject { engine: engine.identity(), document: engine.document() }
}
