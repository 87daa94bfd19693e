//! The state itself: what the log says, as far as the kernel needs it.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::approvals::answers::Asks;
use crate::approvals::sets::Sets;
use crate::authority::credits::Credits;
use crate::authority::signers::{Replaced, Signer};
use crate::authority::tokens::{TokenIndex, Tokens};
use crate::state::agents::AgentState;
use crate::state::idempotency::{KeySlot, Keys};
use crate::state::rates::{Doer, Rates};
use crate::state::sessions::{Session, Streak};
use syscap_format::{
    AgentId, Amounts, Durability, EffectClass, Head, HomeId, HomeLimits, Label, Notify, PolicyHash,
    PreviousRun, PublicKey, RecoveryHash, Roles, Seq, ToolId, ToolsHash, UnixMillis,
};

/// An intent without an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenIntent {
    pub(crate) token: TokenIndex,
    pub(crate) session: Seq,
    pub(crate) held: Amounts,
    pub(crate) effect: EffectClass,
    pub(crate) key: Option<KeySlot>,
    /// True if its session, or the revoker, has cancelled it.
    pub(crate) cancelled: bool,
    /// As whose it is counted. It follows from its record.
    pub(crate) doer: Doer,
}

/// The freezes in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frozen {
    pub(crate) kernel: bool,
    pub(crate) agents: BTreeSet<AgentId>,
    pub(crate) tools: BTreeSet<ToolId>,
}

impl Frozen {
    /// True if a freeze stops all that `agent` does.
    pub(crate) fn stops_agent(&self, agent: &AgentId) -> bool {
        self.kernel || self.agents.iter().any(|frozen| agent.is_within(frozen))
    }

    /// True if a freeze stops a call of `tool` by `agent`; a freeze of an agent covers those below.
    pub(crate) fn stops(&self, agent: &AgentId, tool: &str) -> bool {
        self.tools.iter().any(|frozen| frozen.as_str() == tool) || self.stops_agent(agent)
    }
}

/// A run that was given up and has not come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LateRun {
    pub(crate) token: TokenIndex,
    /// The idempotency key of its call.
    pub(crate) key: Option<KeySlot>,
}

/// A run that was closed without its provider's word, who may still report it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreported {
    pub(crate) token: TokenIndex,
    pub(crate) tool: ToolId,
    pub(crate) effect: EffectClass,
}

/// Everything that the log says, as far as the kernel needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) home: HomeId,
    pub(crate) limits: HomeLimits,
    pub(crate) durability: Durability,
    pub(crate) head: Head,
    pub(crate) time: UnixMillis,
    pub(crate) boot: u64,
    pub(crate) ended: PreviousRun,
    pub(crate) roles: Roles,
    pub(crate) recovery: Option<RecoveryHash>,
    pub(crate) signers: BTreeMap<PublicKey, Signer>,
    pub(crate) replaced: Replaced,
    pub(crate) policy: Option<PolicyHash>,
    /// The policy that is asked for the record only.
    pub(crate) shadow: Option<PolicyHash>,
    pub(crate) tools: Option<ToolsHash>,
    pub(crate) tokens: Tokens,
    /// The operators' credits to agents.
    pub(crate) credits: Credits,
    /// The recent calls of agents.
    pub(crate) rates: Rates,
    /// Root tokens of earlier epochs have ended, and none is registered.
    pub(crate) epoch: u64,
    /// No token by these, or held by them, is registered any more.
    pub(crate) revoked_keys: BTreeSet<PublicKey>,
    pub(crate) sessions: BTreeMap<Seq, Session>,
    pub(crate) agents: BTreeMap<AgentId, AgentState>,
    pub(crate) frozen: Frozen,
    pub(crate) open: BTreeMap<Seq, OpenIntent>,
    /// Runs that were given up and have not come back: they still hold their slot.
    pub(crate) running: BTreeMap<Seq, LateRun>,
    pub(crate) keys: Keys,
    /// Calls that wait for a person.
    pub(crate) asks: Asks,
    /// Approvals of more than one call.
    pub(crate) sets: Sets,
    /// Intents that were found open at boot, of which nothing is known, and about which no operator
    /// has said anything.
    pub(crate) recovered: BTreeSet<Seq>,
    /// Runs that were closed without their providers' word: the newest, as many as may be in flight.
    pub(crate) unreported: BTreeMap<Seq, Unreported>,
    /// Tokens issued before this record wait for an operator to confirm the time.
    pub(crate) unconfirmed_before: Option<Seq>,
    /// Refusals that belong to no session.
    pub(crate) unbound: Streak,
    /// The program to run when a call begins to wait for a person.
    pub(crate) notify: Option<Notify>,
    /// True from the first session on that has its family's label: none has one of its own any more.
    pub(crate) shared_labels: bool,
}

impl State {
    pub(crate) fn signer(&self, key: &PublicKey) -> Signer {
        self.signers.get(key).copied().unwrap_or_default()
    }

    /// The label of everything that a session was given, or may have been.
    pub(crate) fn label_of(&self, session: &Session) -> Label {
        let shared = || self.tokens.label(session.token);
        session.alone.or_else(shared).unwrap_or(Label::PUBLIC)
    }

    /// The refusals in a row of a session, or of none.
    pub(crate) fn streak_of(&self, session: Option<Seq>) -> Option<&Streak> {
        match session {
            Some(session) => self.sessions.get(&session).map(|session| &session.streak),
            None => Some(&self.unbound),
        }
    }

    pub(crate) fn streak_of_mut(&mut self, session: Option<Seq>) -> Option<&mut Streak> {
        match session {
            Some(session) => self.sessions.get_mut(&session).map(|session| &mut session.streak),
            None => Some(&mut self.unbound),
        }
    }
}
