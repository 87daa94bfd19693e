//! The state as canonical bytes: equal states have equal images. Token bodies and snapshots
//! are not in it: they are objects, and stand here by their ids.

use alloc::vec::Vec;

use crate::budget::Amounts;
use crate::control::{Notify, RevocationList, Role, Roles};
use crate::envelope::Status;
use crate::facts::FactKey;
use crate::field::{code, encode, shape};
use crate::id::{
    AgentId, FactId, HomeId, IdempotencyKey, Leaf, PolicyHash, RecoveryHash, ResultHash, SentHash,
    Seq, SnapshotId, TokenId, ToolId, ToolsHash,
};
use crate::label::Label;
use crate::manifest::EffectClass;
use crate::obligation::Obligation;
use crate::record::{Durability, Head, HomeLimits, PreviousRun};
use crate::sign::PublicKey;
use crate::time::UnixMillis;
use crate::token::Grants;

shape! {
    /// The state after a record. Lists of what has a number or a name are sorted by it.
    pub struct StateImage {
        /// Version of this form: 1.
        1 => pub version: u64,
        /// The home.
        2 => pub home: HomeId,
        /// The last record.
        3 => pub head: Head,
        /// Its time.
        4 => pub time: UnixMillis,
        /// The number of the boot.
        5 => pub boot: u64,
        /// How it stands: ended cleanly, or not.
        6 => pub ended: PreviousRun,
        /// The failures that an acknowledged record survives.
        7 => pub durability: Durability,
        /// The limits that are fixed for the home.
        8 => pub limits: HomeLimits,
        /// The roles' keys.
        9 => pub roles: Roles,
        /// Hash of the recovery key.
        10 => pub recovery: Option<RecoveryHash>,
        /// The signatures of each key so far.
        11 => pub signers: Vec<SignerImage>,
        /// The policy in force.
        12 => pub policy: Option<PolicyHash>,
        /// The shadow.
        13 => pub shadow: Option<PolicyHash>,
        /// The tools in force.
        14 => pub tools: Option<ToolsHash>,
        /// The tokens, in the order of their registration: others name them by their place.
        15 => pub tokens: Vec<TokenImage>,
        /// The open sessions.
        16 => pub sessions: Vec<SessionImage>,
        /// The agents' states.
        17 => pub agents: Vec<AgentImage>,
        /// True if everything is frozen.
        18 => pub frozen: bool,
        /// The frozen agents.
        19 => pub frozen_agents: Vec<AgentId>,
        /// The frozen tools.
        20 => pub frozen_tools: Vec<ToolId>,
        /// The open intents.
        21 => pub open: Vec<OpenImage>,
        /// Runs that were given up and have not come back.
        22 => pub running: Vec<RunningImage>,
        /// The idempotency keys.
        23 => pub keys: Vec<KeyImage>,
        /// Intents that a boot closed and that no operator has said anything about.
        24 => pub recovered: Vec<Seq>,
        /// Tokens registered before this record wait for the time to be confirmed.
        25 => pub unconfirmed_before: Option<Seq>,
        /// Refusals of no session.
        26 => pub unbound: RowImage,
        /// The last changes of the roles' keys.
        27 => pub keys_changed: Vec<KeysChangedImage>,
        /// The last change of policies; genesis before the first.
        28 => pub policy_changed: Seq,
        /// The last change of tools; genesis before the first.
        29 => pub tools_changed: Seq,
        /// The calls that wait for a person.
        30 => pub asks: Vec<AskImage>,
        /// The least epoch of a root token that stays.
        31 => pub epoch: u64,
        /// The keys by which, and for which, no token is registered any more.
        32 => pub revoked_keys: Vec<PublicKey>,
        /// The approvals of more than one call that stand.
        33 => pub sets: Vec<SetImage>,
        /// The accounts of agents.
        34 => pub accounts: Vec<AccountImage>,
        /// The recent calls, counted.
        35 => pub rates: Vec<RateImage>,
        /// The program that runs when a call begins to wait for a person.
        36 => pub notify: Option<Notify>,
        /// The list of revocations in force, with the tokens of all lists that are not registered.
        37 => pub list: Option<RevocationList>,
        /// Runs that were closed without their providers' word.
        38 => pub unreported: Vec<UnreportedImage>,
    }
}

impl StateImage {
    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }
}

shape! {
    /// The signatures of a key so far.
    pub struct SignerImage {
        /// The key.
        1 => pub key: PublicKey,
        /// The counter of its last control event.
        2 => pub counter: u64,
        /// The last record that it signed.
        3 => pub last: Seq,
    }
}

shape! {
    /// When a role got the keys that it has.
    pub struct KeysChangedImage {
        /// The role.
        1 => pub role: Role,
        /// The record that says so.
        2 => pub changed: Seq,
    }
}

shape! {
    /// A token and what it has used.
    pub struct TokenImage {
        /// The token.
        1 => pub token: TokenId,
        /// The place of the one that it was derived from.
        2 => pub parent: Option<u64>,
        /// The record that registered it.
        3 => pub issued: Seq,
        /// True if it was revoked itself.
        4 => pub revoked: bool,
        /// True if a measurement or a charge has exhausted it.
        5 => pub exhausted: bool,
        /// The amounts used.
        6 => pub used: Amounts,
        /// The amounts reserved.
        7 => pub held: Amounts,
        /// By when it must be renewed, by what it says or by what has renewed it since.
        8 => pub renew_by: Option<UnixMillis>,
        /// The label of its family: of everything that sessions by its tokens were given.
        9 => pub label: Label,
    }
}

shape! {
    /// An agent's account: the credits that it was given, and that it and all agents below it have
    /// spent, in millionths of a credit.
    pub struct AccountImage {
        /// The agent.
        1 => pub agent: AgentId,
        /// The record that opened it.
        2 => pub opened: Seq,
        /// The credits given in all.
        3 => pub granted: u64,
        /// The credits used.
        4 => pub used: u64,
        /// The credits reserved.
        5 => pub held: u64,
    }
}

shape! {
    /// The calls within a stretch of time, by an agent, or by it with one tool.
    pub struct RateImage {
        /// The agent; null for those that have no counts of their own, all together.
        1 => pub agent: Option<AgentId>,
        /// The tool; null for all that the agent does.
        2 => pub tool: Option<ToolId>,
        /// Which width the stretch has: 0 of a minute's twelfth, 1 of an hour's, 2 of a day's.
        3 => pub span: u64,
        /// How many such widths after 1970 it begins.
        4 => pub bucket: u64,
        /// Calls that were admitted.
        5 => pub calls: u64,
        /// Calls that were refused, or asked about.
        6 => pub refusals: u64,
        /// Bytes that were written and sent, or are set aside for that.
        7 => pub bytes: u64,
    }
}

shape! {
    /// A call that waits for a person. Its record holds the question.
    pub struct AskImage {
        /// The record.
        1 => pub ask: Seq,
        /// Its leaf.
        2 => pub leaf: Leaf,
        /// The keys that have approved, in the order of their records, while more are needed.
        3 => pub approved: Vec<PublicKey>,
        /// The approval that was the last one needed; null before.
        4 => pub granted: Option<Seq>,
        /// When that ends.
        5 => pub until: Option<UnixMillis>,
        /// The answer that said no; null where nobody has.
        6 => pub denied: Option<Seq>,
        /// The terms on which those who have approved agree so far; null before the first of
        /// several.
        7 => pub terms: Option<TermsImage>,
    }
}

shape! {
    /// The terms of an approval.
    pub struct TermsImage {
        /// For how many calls; null for the one that waits.
        1 => pub uses: Option<u64>,
        /// The scopes covered besides the resources of that call.
        2 => pub scopes: Option<Grants>,
        /// When it ends, as far as that was said.
        3 => pub expires: Option<UnixMillis>,
        /// True if it ends with the session that asked.
        4 => pub with_session: bool,
    }
}

shape! {
    /// An approval of more than one call.
    pub struct SetImage {
        /// The approval that was the last one needed.
        1 => pub set: Seq,
        /// The call that asked.
        2 => pub ask: Seq,
        /// The place of the token that it is for.
        3 => pub token: u64,
        /// The session that it ends with; null for none.
        4 => pub session: Option<Seq>,
        /// For how many calls it still stands.
        5 => pub left: u64,
        /// When it ends.
        6 => pub until: UnixMillis,
        /// The scopes covered besides the resources of that call.
        7 => pub scopes: Option<Grants>,
    }
}

shape! {
    /// An open session.
    pub struct SessionImage {
        /// Its number.
        1 => pub session: Seq,
        /// Its agent.
        2 => pub agent: AgentId,
        /// The place of its token.
        3 => pub token: u64,
        /// The snapshot that it was opened on.
        4 => pub snapshot: SnapshotId,
        /// Its refusals in a row.
        5 => pub row: RowImage,
        /// The label of everything delivered to it.
        6 => pub label: Label,
        /// The results that it can refer to, the oldest first.
        7 => pub released: Vec<ReleasedImage>,
    }
}

shape! {
    /// Refusals in a row.
    pub struct RowImage {
        /// How many have had records of their own.
        1 => pub in_a_row: u64,
        /// How many the next aggregate answers at the most.
        2 => pub next_max: u64,
        /// The record that opened an aggregate; null where none is open.
        3 => pub opened: Option<Seq>,
        /// How many it answers at the most; 0 for none.
        4 => pub answers_max: u64,
        /// How many calls were charged for it; 0 for none.
        5 => pub reserved: u64,
    }
}

shape! {
    /// A result that was released to a session.
    pub struct ReleasedImage {
        /// The outcome.
        1 => pub outcome: Seq,
        /// The intent.
        2 => pub intent: Seq,
        /// The result hash of the outcome.
        3 => pub result_hash: ResultHash,
    }
}

shape! {
    /// An agent's state.
    pub struct AgentImage {
        /// The agent.
        1 => pub agent: AgentId,
        /// Its head snapshot.
        2 => pub head: SnapshotId,
        /// Its facts.
        3 => pub facts: Vec<FactImage>,
        /// The snapshots before that a call may name, the oldest first.
        4 => pub ancestors: Vec<SnapshotId>,
    }
}

shape! {
    /// A fact in force.
    pub struct FactImage {
        /// Its key.
        1 => pub key: FactKey,
        /// Its commitment.
        2 => pub fact: FactId,
        /// The record that wrote it.
        3 => pub written: Seq,
    }
}

shape! {
    /// An open intent.
    pub struct OpenImage {
        /// The intent.
        1 => pub intent: Seq,
        /// The place of its token.
        2 => pub token: u64,
        /// Its session.
        3 => pub session: Seq,
        /// The amounts that it holds.
        4 => pub held: Amounts,
        /// The effect class of the call.
        5 => pub effect: EffectClass,
        /// Its key's agent; null where it has no key, and so the next two.
        6 => pub key_agent: Option<AgentId>,
        /// Its key's tool.
        7 => pub key_tool: Option<ToolId>,
        /// Its key.
        8 => pub key: Option<IdempotencyKey>,
        /// True if it was cancelled.
        9 => pub cancelled: bool,
    }
}

shape! {
    /// A run that was given up.
    pub struct RunningImage {
        /// The intent.
        1 => pub intent: Seq,
        /// The place of its token.
        2 => pub token: u64,
    }
}

shape! {
    /// A run that was closed without its provider's word.
    pub struct UnreportedImage {
        /// The intent.
        1 => pub intent: Seq,
        /// The place of its token.
        2 => pub token: u64,
        /// The tool.
        3 => pub tool: ToolId,
        /// The call's effect class.
        4 => pub effect: EffectClass,
    }
}

code! {
    /// The state of the first call with an idempotency key.
    pub enum KeyStanding {
        /// It has no outcome yet.
        InFlight = 1 "in_flight",
        /// It has one.
        Done = 2 "done",
        /// The effect is unknown.
        Unknown = 3 "unknown",
    }
}

shape! {
    /// An idempotency key.
    pub struct KeyImage {
        /// Whose.
        1 => pub agent: AgentId,
        /// For which tool.
        2 => pub tool: ToolId,
        /// The key.
        3 => pub key: IdempotencyKey,
        /// The first intent.
        4 => pub intent: Seq,
        /// Commitment to its arguments as sent.
        5 => pub sent: SentHash,
        /// The place of its token.
        6 => pub token: u64,
        /// From then on it is not answered any more.
        7 => pub until: UnixMillis,
        /// The state of the call.
        8 => pub standing: KeyStanding,
        /// The outcome, or the record which says that nobody knows; null in flight.
        9 => pub outcome: Option<Seq>,
        /// The result hash of the outcome if the call is done; null otherwise. The same holds for
        /// the fields below.
        10 => pub result_hash: Option<ResultHash>,
        /// The status of the result.
        11 => pub status: Option<Status>,
        /// The obligations by which the policy degraded it.
        12 => pub degraded: Vec<Obligation>,
        /// The label of its outcome.
        13 => pub label: Label,
        /// The label of its intent.
        14 => pub given: Label,
    }
}
