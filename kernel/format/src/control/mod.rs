//! Signed control events: what changes the kernel's state other than by a call.
//!
//! Each is signed by keys of its role over the home's id, the log's head as the signer saw it, the
//! key, a counter that grows per key, the kind and the body; all of them stay in the record, so a
//! verifier needs nothing else.

pub(crate) mod event;
pub(crate) mod roles;
mod trust;

pub use event::{CONTROL_CONTEXT, Control, Signed};
pub use trust::Trust;

pub use roles::{
    Algorithm, POSSESSION_CONTEXT, Role, RoleKey, RoleSet, Roles, possession, recovery_hash,
};

use alloc::{boxed::Box, vec::Vec};

use crate::cbor::DecodeError;
use crate::field::{code, decode, encode, shape};
use crate::id::{AgentId, HomeId, PolicyHash, Seq, TextHash, TokenId, ToolId, ToolsHash};
use crate::label::Confidentiality;
use crate::limits::{LIST_MAX, LISTED_MAX, NOTIFY_MS_MAX, TEXT_BYTES_MAX};
use crate::record::call::{CancelBody, Recovered};
use crate::record::kind::RecordKind;
use crate::record::reserved::{ApprovalBody, PruneBody, RedactBody};
use crate::sign::{PublicKey, Signature};
use crate::time::UnixMillis;

shape! {
    /// A key's own word that somebody holds it.
    pub struct Possession {
        /// The key.
        1 => pub key: PublicKey,
        /// Over [`POSSESSION_CONTEXT`] and [`possession`]'s message.
        2 => pub signature: Signature,
    }
}

shape! {
    /// Body of a `key` event: a role has other keys from here on.
    pub struct KeyChange {
        /// The role's keys, whole.
        1 => pub set: RoleSet,
        /// A proof for each key that the role did not have, sorted by key.
        2 => pub proofs: Vec<Possession>,
        /// For the issuer: root tokens by keys that it no longer has, registered after this record,
        /// are revoked. Null: they stay. Null for every other role.
        3 => pub cut_off: Option<Seq>,
    }
}

impl KeyChange {
    /// True if the set is sound, each key that is new to `before` has a proof of possession, and no
    /// other proof is there.
    #[must_use]
    pub fn is_proved(&self, home: &HomeId, before: &RoleSet) -> bool {
        let role = self.set.role;
        let new = self.set.keys().filter(|key| !before.holds(key));
        let proofs = &self.proofs;
        let proved = |proof: &Possession| {
            let message = possession(home, role, &proof.key);
            proof.key.verify(POSSESSION_CONTEXT, &message, &proof.signature).is_ok()
        };
        self.set.is_sound()
            && new.eq(proofs.iter().map(|proof| proof.key))
            && proofs.iter().all(proved)
    }
}

code! {
    /// The target of a revocation.
    pub enum RevokeTarget {
        /// A token and all that was derived from it.
        Subtree = 1 "subtree",
        /// All that was derived from a token so far, but not the token.
        Children = 2 "children",
        /// All root tokens of epochs before one, and what was derived from them.
        Epoch = 3 "epoch",
        /// All tokens that a key has issued or holds, and what was derived from them.
        Key = 4 "key",
    }
}

shape! {
    /// Body of a `revoke` event: what it names ends, for ever.
    #[must_use]
    pub struct Revocation {
        /// The kind of target.
        1 => pub target: RevokeTarget,
        /// The token; null for an epoch or a key.
        2 => pub token: Option<TokenId>,
        /// The first epoch that stays; null for all others.
        3 => pub epoch: Option<u64>,
        /// The key; null for all others.
        4 => pub key: Option<PublicKey>,
        /// Why: a salted commitment, the text in the vault; null where nothing was said.
        5 => pub cause: Option<TextHash>,
    }
}

/// A revocation's target, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// A token and all that was derived from it.
    Subtree(TokenId),
    /// All that was derived from a token so far.
    Children(TokenId),
    /// Root tokens of all epochs before this one.
    Epoch(u64),
    /// Tokens by this key, or held by it.
    Key(PublicKey),
}

impl Revocation {
    /// Ends a token and all that was derived from it, or is yet.
    pub const fn subtree(token: TokenId) -> Self {
        Self { token: Some(token), ..Self::of(RevokeTarget::Subtree) }
    }

    /// Ends all that was derived from a token so far. The token lives, and can be handed on anew.
    pub const fn children(token: TokenId) -> Self {
        Self { token: Some(token), ..Self::of(RevokeTarget::Children) }
    }

    /// Ends every root token of an epoch before this one, and what was derived from it. From then
    /// on none is registered below it, and new ones are of this epoch.
    pub const fn epoch(least: u64) -> Self {
        Self { epoch: Some(least), ..Self::of(RevokeTarget::Epoch) }
    }

    /// Ends every token by a key or held by it, and what was derived from it. From then on none is
    /// registered that is.
    pub const fn key(key: PublicKey) -> Self {
        Self { key: Some(key), ..Self::of(RevokeTarget::Key) }
    }

    /// The same, with the commitment to why: of the text under the body's key 5.
    pub const fn because(self, cause: TextHash) -> Self {
        Self { cause: Some(cause), ..self }
    }

    /// The target; `None` if it names something else than its target, or more.
    pub const fn revoked(&self) -> Option<Revoked> {
        let Self { target, token, epoch, key, cause: _ } = *self;
        match (target, token, epoch, key) {
            (RevokeTarget::Subtree, Some(token), None, None) => Some(Revoked::Subtree(token)),
            (RevokeTarget::Children, Some(token), None, None) => Some(Revoked::Children(token)),
            (RevokeTarget::Epoch, None, Some(least), None) => Some(Revoked::Epoch(least)),
            (RevokeTarget::Key, None, None, Some(key)) => Some(Revoked::Key(key)),
            _ => None,
        }
    }

    const fn of(target: RevokeTarget) -> Self {
        Self { target, token: None, epoch: None, key: None, cause: None }
    }
}

shape! {
    /// The other body of a `revoke` event: a list of tokens that have ended. The one with the
    /// greatest version is in force, and says as of when nothing is missing: what earlier ones
    /// named stays ended.
    pub struct RevocationList {
        /// Greater than that of the list before.
        1 => pub version: u64,
        /// Until then it names all that ended, by the word of who signed it.
        2 => pub as_of: UnixMillis,
        /// The tokens, registered or not: sorted, each once, at most 1,024.
        3 => pub tokens: Vec<TokenId>,
        /// Why: as in a [`Revocation`].
        4 => pub cause: Option<TextHash>,
    }
}

impl RevocationList {
    /// True if it has its form, and fits beside the number of listed tokens that are not
    /// registered: at most 65,536 are kept.
    #[must_use]
    pub fn is_sound(&self, kept: usize) -> bool {
        let count = self.tokens.len();
        let room = kept.saturating_add(count) <= LISTED_MAX;
        count <= LIST_MAX && room && self.tokens.is_sorted_by(|one, next| one < next)
    }
}

code! {
    /// The target of a freeze.
    pub enum FreezeTarget {
        /// One agent.
        Agent = 1 "agent",
        /// One tool.
        Tool = 2 "tool",
        /// Every call.
        Kernel = 3 "kernel",
    }
}

impl Freeze {
    /// Stops one agent.
    pub fn agent(agent: &AgentId) -> Self {
        Self::begins(FreezeTarget::Agent, agent.as_str())
    }

    /// Stops one tool.
    pub fn tool(tool: &ToolId) -> Self {
        Self::begins(FreezeTarget::Tool, tool.as_str())
    }

    /// Stops every call.
    pub fn all() -> Self {
        Self::begins(FreezeTarget::Kernel, "")
    }

    /// The end of the same.
    pub fn thaw(self) -> Self {
        Self { change: FreezeChange::Thaw, ..self }
    }

    fn begins(target: FreezeTarget, name: &str) -> Self {
        Self { target, name: Box::from(name), change: FreezeChange::Freeze }
    }
}

code! {
    /// The beginning or the end of a freeze.
    pub enum FreezeChange {
        /// It begins.
        Freeze = 1 "freeze",
        /// It ends.
        Thaw = 2 "thaw",
    }
}

shape! {
    /// Body of a `freeze` event.
    #[must_use]
    pub struct Freeze {
        /// The target.
        1 => pub target: FreezeTarget,
        /// The agent's or the tool's id; empty for the kernel.
        2 => pub name: Box<str>,
        /// The beginning or the end.
        3 => pub change: FreezeChange,
    }
}

shape! {
    /// The other body of a `freeze` event: with the reason. The record of it has version 3.
    #[must_use]
    pub struct FreezeBecause {
        /// The target.
        1 => pub target: FreezeTarget,
        /// The agent's or the tool's id; empty for the kernel.
        2 => pub name: Box<str>,
        /// The beginning or the end.
        3 => pub change: FreezeChange,
        /// The commitment to the reason, whose text lies in the vault.
        4 => pub cause: TextHash,
    }
}

impl FreezeBecause {
    /// Begins or ends a freeze, for a reason.
    pub fn new(freeze: Freeze, cause: TextHash) -> Self {
        let Freeze { target, name, change } = freeze;
        Self { target, name, change, cause }
    }

    /// The freeze.
    pub fn freeze(self) -> Freeze {
        let Self { target, name, change, .. } = self;
        Freeze { target, name, change }
    }
}

shape! {
    /// Body of a `policy` event: which policy is in force from here on, and which one is asked
    /// beside it. One record swaps both.
    pub struct PolicyChange {
        /// The hash of the policy in force; the object is stored with the record.
        1 => pub policy: PolicyHash,
        /// The hash of the policy that is asked for the record only; null for none.
        2 => pub shadow: Option<PolicyHash>,
    }
}

shape! {
    /// The other body of a `policy` event: with the reason. The record of it has version 3.
    pub struct PolicyBecause {
        /// The hash of the policy in force; the object is stored with the record.
        1 => pub policy: PolicyHash,
        /// The hash of the policy that is asked for the record only; null for none.
        2 => pub shadow: Option<PolicyHash>,
        /// The commitment to the reason, whose text lies in the vault.
        3 => pub cause: TextHash,
    }
}

impl PolicyBecause {
    /// Puts a policy in force, for a reason.
    pub const fn new(change: PolicyChange, cause: TextHash) -> Self {
        let PolicyChange { policy, shadow } = change;
        Self { policy, shadow, cause }
    }

    /// The change.
    pub const fn change(&self) -> PolicyChange {
        PolicyChange { policy: self.policy, shadow: self.shadow }
    }
}

shape! {
    /// Body of a `tools` event: the tools are others.
    pub struct ToolsChange {
        /// Their hash; the object and the manifests are stored with the record.
        1 => pub tools: ToolsHash,
    }
}

shape! {
    /// Body of a `config` event.
    pub struct ConfigChange {
        /// The operator says that this is about the time: tokens that a gap at boot suspended
        /// are valid again.
        1 => pub confirm_time: Option<UnixMillis>,
    }
}

shape! {
    /// The other body of a `config` event: what is run from here on when a call begins to wait for
    /// a person.
    pub struct Notify {
        /// The program, by its absolute path; empty: none.
        1 => pub program: Box<str>,
        /// Of a more confidential request it is told only that there is one.
        2 => pub ceiling: Confidentiality,
        /// After so many milliseconds it is killed: 1 to 60,000.
        3 => pub limit_ms: u64,
    }
}

impl Notify {
    /// True if it can be run, or names no program.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let program = &*self.program;
        (program.is_empty() || program.starts_with('/'))
            && program.len() <= TEXT_BYTES_MAX
            && !program.contains('\0')
            && (1..=NOTIFY_MS_MAX).contains(&self.limit_ms)
    }
}

shape! {
    /// Body of a signed `recovery` event: what an operator found out about an open intent.
    pub struct Resolution {
        /// The intent.
        1 => pub intent: Seq,
        /// The outcome of the call.
        2 => pub verdict: Recovered,
    }
}

shape! {
    /// Body of a `credit` event: an agent, and all below it, may use so much more.
    pub struct CreditChange {
        /// Whose account. The first event of an agent opens it.
        1 => pub agent: AgentId,
        /// How much is added, in millionths of a credit.
        2 => pub added: u64,
    }
}

/// A body of one of the forms above, in its canonical bytes.
pub trait ControlBody: Sized {
    /// The kind of event that it is the body of.
    const KIND: RecordKind;
    /// The key under which it commits to why; 0 where it has none.
    const CAUSE: u64;
    /// The commitment to why, where it has one.
    fn cause(&self) -> Option<TextHash>;
    /// The canonical bytes.
    fn to_bytes(&self) -> Vec<u8>;
    /// Reads the canonical bytes.
    ///
    /// # Errors
    /// The first fault.
    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError>;
}

/// Ties bodies to their kinds.
macro_rules! bodies {
    ($($kind:ident $name:ident $([$cause:literal $field:ident])?)*) => {$(
        impl ControlBody for $name {
            const KIND: RecordKind = RecordKind::$kind;
            const CAUSE: u64 = 0 $(+ $cause)?;

            fn cause(&self) -> Option<TextHash> {
                let said: &[Option<TextHash>] = &[$(self.$field.into())?];
                said.first().copied().flatten()
            }

            fn to_bytes(&self) -> Vec<u8> {
                encode(self)
            }

            fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
                decode::<Self>(bytes)
            }
        }
    )*};
}
bodies! {
    Key KeyChange Revoke Revocation [5 cause] Revoke RevocationList [4 cause] Freeze Freeze
    Freeze FreezeBecause [4 cause] Policy PolicyChange Policy PolicyBecause [3 cause] Tools ToolsChange Config ConfigChange Config Notify
    Approval ApprovalBody [7 reason]
    Cancel CancelBody [2 cause] Recovery Resolution Redact RedactBody [2 cause] Prune PruneBody
    Credit CreditChange
}
