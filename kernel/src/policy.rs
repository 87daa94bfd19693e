//! The policy engine's side of a call: the question and the decision.

use alloc::{boxed::Box, vec::Vec};

use crate::{
    budget::Amounts,
    cbor::Item,
    field::{List, code, encode, shape},
    hash::Domain,
    id::{AgentId, PolicyHash, TokenId},
    limits::{DECISION_TEXTS_MAX, DETAIL_BYTES_MAX},
    manifest::Manifest,
    time::UnixMillis,
    token::Grant,
    tool::Demand,
};

code! {
    /// What a policy says of a call, from the mildest to the strictest.
    pub enum Verdict {
        /// Run it.
        Allow = 0 "allow",
        /// Run it with less, and say what was taken away.
        Degrade = 1 "degrade",
        /// A person must approve it first.
        Ask = 2 "ask",
        /// Refuse it now; it may be sent again on a condition.
        Defer = 3 "defer",
        /// Refuse it.
        Deny = 4 "deny",
    }
}

shape! {
    /// A verdict with what led to it.
    pub struct Decision {
        /// The verdict.
        1 => pub verdict: Verdict,
        /// The constraint that decided.
        2 => pub deciding: Option<Box<str>>,
        /// The first constraints that matched.
        3 => pub matches: List<Box<str>>,
        /// How many matched in all.
        4 => pub match_count: u64,
        /// Digest of all that matched, where there are more than are listed.
        5 => pub matches_digest: Option<[u8; 32]>,
        /// What a degraded run must keep to.
        6 => pub obligations: List<Box<str>>,
    }
}

impl Decision {
    /// A verdict that no constraint led to.
    #[must_use]
    pub const fn plain(verdict: Verdict) -> Self {
        Self {
            verdict,
            deciding: None,
            matches: List(Vec::new()),
            match_count: 0,
            matches_digest: None,
            obligations: List(Vec::new()),
        }
    }

    /// Whether it fits into a record.
    pub(crate) fn is_bounded(&self) -> bool {
        let texts = || self.deciding.iter().chain(&self.matches.0).chain(&self.obligations.0);
        texts().count() <= DECISION_TEXTS_MAX && texts().all(|t| t.len() <= DETAIL_BYTES_MAX)
    }
}

/// What a policy is asked. All of it is the kernel's own: nothing here can be handed in.
#[derive(Debug)]
pub struct Question<'a> {
    /// The calling agent.
    pub agent: &'a AgentId,
    /// The token.
    pub token: TokenId,
    /// What the token grants for this tool.
    pub grant: &'a Grant,
    /// The tool's manifest.
    pub manifest: &'a Manifest,
    /// The resolved arguments after defaults.
    pub args: Item<'a>,
    /// What the plan would touch.
    pub demands: &'a [Demand],
    /// What the plan would set aside.
    pub hold: &'a Amounts,
    /// What is left of the budget, the tightest of the token's chain.
    pub left: &'a Amounts,
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
}

shape! {
    /// Which engine decides.
    pub struct EngineIdentity {
        /// Its name.
        1 => pub name: Box<str>,
        /// The version of its semantics.
        2 => pub version: u64,
    }
}

shape! {
    /// The object that a policy hash names.
    pub struct PolicyObject {
        /// Which engine decides.
        1 => pub engine: EngineIdentity,
        /// Its canonical document.
        2 => pub document: Vec<u8>,
    }
}

impl PolicyObject {
    /// What `engine` stands for.
    #[must_use]
    pub fn of(engine: &dyn PolicyEngine) -> Self {
        Self { engine: engine.identity(), document: engine.document() }
    }

    /// The canonical bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// The policy's hash.
    #[must_use]
    pub fn hash(&self) -> PolicyHash {
        PolicyHash::from_bytes(Domain::POLICY.hash(&[&self.to_bytes()]))
    }
}
