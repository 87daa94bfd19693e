//! The policy engine's side of a call: the question and the decision.

use alloc::{boxed::Box, vec::Vec};

use crate::{
    budget::Amounts,
    cbor::{DecodeError, Encoder, Item},
    facts::Facts,
    field::{List, code, decode, encode, shape},
    hash::Domain,
    id::{AgentId, ConstraintId, PolicyHash, TokenId, ToolId},
    limits::{MATCHES_MAX, OBLIGATION_NAME_BYTES_MAX, OBLIGATIONS_MAX},
    manifest::Manifest,
    obligation::Obligation,
    provenance::Source,
    time::UnixMillis,
    token::{Grant, TokenBody},
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
        2 => pub deciding: Option<ConstraintId>,
        /// The first constraints that matched, at most [`MATCHES_MAX`].
        3 => pub matches: List<ConstraintId>,
        /// How many matched in all.
        4 => pub match_count: u64,
        /// [`matches_digest`] of all that matched, where there are more than are listed.
        5 => pub matches_digest: Option<[u8; 32]>,
        /// What is asked beside the verdict, united.
        6 => pub obligations: List<Obligation>,
    }
}

/// Digest of the constraints that matched: of the CBOR array of their places in the document,
/// counted from 0 in the order of their ids.
#[must_use]
pub fn matches_digest(places: &[u16]) -> [u8; 32] {
    let mut encoder = Encoder::with_capacity(places.len().saturating_mul(3).saturating_add(3));
    encoder.array(places.len());
    places.iter().for_each(|place| encoder.uint(u64::from(*place)));
    Domain::MATCHES.hash(&[&encoder.into_bytes()])
}

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

    /// Whether it fits into a record, and its parts agree: a verifier refuses any other.
    pub(crate) fn is_sound(&self) -> bool {
        let named = self.obligations.0.iter().filter_map(|asked| asked.name.as_ref());
        let listed = u64::try_from(self.matches.0.len()).unwrap_or(u64::MAX);
        let counted = self.match_count >= listed
            && self.matches_digest.is_some() == (self.match_count > listed);
        let taken = self.obligations.0.iter().any(|asked| asked.kind.takes_away());
        let united = self.obligations.0.is_sorted_by(|one, next| {
            (one.kind.code(), &one.name) < (next.kind.code(), &next.name)
        });
        self.matches.0.len() <= MATCHES_MAX
            && counted
            && united
            && (taken || self.verdict != Verdict::Degrade)
            && !(taken && self.verdict == Verdict::Allow)
            && self.obligations.0.len() <= OBLIGATIONS_MAX
            && named.into_iter().all(|name| name.len() <= OBLIGATION_NAME_BYTES_MAX)
    }
}

shape! {
    /// What a policy that is not in force says of a call. It is recorded and changes nothing.
    pub struct Shadow {
        /// The policy.
        1 => pub policy: PolicyHash,
        /// What it says.
        2 => pub decision: Decision,
    }
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
    /// What the caller of a call that is not allowed may be told. Asked for refusals only.
    fn advise(&self, _question: &Question<'_>, _decision: &Decision) -> Advice {
        Advice::default()
    }
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

    /// Reads the canonical bytes.
    ///
    /// # Errors
    /// The first fault.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        decode(bytes)
    }

    /// The policy's hash.
    #[must_use]
    pub fn hash(&self) -> PolicyHash {
        PolicyHash::from_bytes(Domain::POLICY.hash(&[&self.to_bytes()]))
    }
}
