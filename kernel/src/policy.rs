//! The policy engine's side of a call: the question and the decision.

use alloc::{boxed::Box, vec::Vec};

use crate::{history::Told, tool::Demand};
use syscap_format::{
    AgentId, Amounts, ApprovalChannel, Decision, EffectClass, EngineIdentity, Facts, Item,
    Manifest, PolicyObject, PublicKey, Source, TokenBody, TokenId, ToolGrant, ToolId, UnixMillis,
};

/// What a caller may be told about a refusal by policy, so that it can repair the call. It is
/// delivered and not recorded, and holds nothing but what the policy's author wrote for callers
/// and what an allow asks of an argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// The argument that could be changed; `None` where no argument would help.
    pub argument: Option<Box<str>>,
    /// What would be allowed there, or what the author says.
    pub allowed: Option<Box<str>>,
}

/// Who may approve what needs a level, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The keys that count, of those of the approvers.
    pub keys: Vec<PublicKey>,
    /// How many of them must approve, where the role asks for fewer.
    pub approvals: u64,
    /// The means that count, of those that do otherwise.
    pub means: Vec<ApprovalChannel>,
}

/// What a policy is asked. All of it is the kernel's own: nothing here can be handed in.
#[derive(Debug)]
pub struct Question<'a> {
    /// The calling agent.
    pub agent: &'a AgentId,
    /// The token.
    pub token: TokenId,
    /// What the token says.
    pub body: &'a TokenBody,
    /// What the token grants for this tool.
    pub grant: &'a ToolGrant,
    /// The tool's manifest.
    pub manifest: &'a Manifest,
    /// What this very call does to the world: the manifest's class, or less.
    pub effect: EffectClass,
    /// The resolved arguments after defaults.
    pub args: Item<'a>,
    /// What the plan would touch.
    pub demands: &'a [Demand],
    /// What the plan would set aside.
    pub hold: &'a Amounts,
    /// What is left of the budget, the tightest of the token's chain.
    pub left: &'a Amounts,
    /// What the agent has done of late, without this call.
    pub history: Told<'a>,
    /// The facts of the agent's head snapshot.
    pub facts: &'a Facts,
    /// Who brought the call about, by the host's word; what its caller says of that is not asked.
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
    /// Who may approve what needs that level: asked of calls that wait for somebody of it. `None`
    /// where the policy names nobody; then such a call is refused. Of the level `client` only the
    /// means are asked, of any call: those that count, where others do than usually.
    fn level(&self, _name: &str) -> Option<Level> {
        None
    }
    /// What the caller of a call that is not allowed may be told. Asked for refusals only.
    fn advise(&self, _question: &Question<'_>, _decision: &Decision) -> Advice {
        Advice::default()
    }
}

/// The object that an engine stands for.
#[must_use]
pub fn object_of(engine: &dyn PolicyEngine) -> PolicyObject {
    PolicyObject { engine: engine.identity(), document: engine.document() }
}
