//! Calls that wait: for the host, for a record to be durable, for their run.

use alloc::{boxed::Box, vec::Vec};

use crate::approvals::conditions::{Condition, Inspected};
use crate::authority::tokens::TokenIndex;
use crate::call::fetch::{Fetched, Wanted};
use crate::call::follow::Seen;
use crate::call::links::{Found, Lookup};
use crate::events::{Ack, Submit};
use crate::tool::Ticket;
use crate::tool::{AnyPlan, Live};
use syscap_format::{
    AgentId, ArgsHash, CallDigest, CallFields, CallSalts, EffectClass, Label, Leaf, Refused, Seq,
    ToolId, ToolResult, UnixMillis, VaultEntry,
};

/// A call that waits for the host.
pub(crate) struct Parked {
    pub(crate) submit: Submit,
    pub(crate) waits_for: Awaited,
    pub(crate) gathered: Gathered,
}

/// What the host brought for a call so far: each is asked for once, as long as what it answers does
/// not change. All of it together is bounded as the call itself is.
#[derive(Default)]
pub(crate) struct Gathered {
    /// The parts of results that its arguments refer to, or the first outcome of its idempotency
    /// key.
    pub(crate) results: Option<Fetched>,
    /// What the links of an argument lead to.
    pub(crate) links: Option<Seen>,
    /// What was seen of what it would change, where that was looked at.
    pub(crate) looked: Option<Looked>,
    /// The texts that an answer of a person rests on, by the record that they lie beside.
    pub(crate) texts: Option<(Seq, VaultEntry)>,
}

/// What a call would change, as it was seen: for the arguments that are committed to so. `None`
/// where the tool broke off.
pub(crate) type Looked = (Option<ArgsHash>, Option<Inspected>);

/// What a call had to wait for.
pub(crate) enum Brought {
    Fetched(Fetched),
    Found(Result<Found, Refused>),
    Seen(Option<Inspected>),
}

pub(crate) enum Awaited {
    /// A read of the vault.
    Vault(Wanted),
    /// What links lead to.
    Links(Lookup),
    /// What is there that a call with these arguments would change. It is asked about after that.
    /// Links are followed anew then, since much may have happened.
    Look(Option<ArgsHash>),
}

/// The kernel's half of a call that has an intent.
pub(crate) struct InFlight {
    pub(crate) live: Live,
    pub(crate) leaf: Leaf,
    /// When the call was admitted.
    pub(crate) since: UnixMillis,
    pub(crate) agent: AgentId,
    pub(crate) token: TokenIndex,
    pub(crate) tool: ToolId,
    pub(crate) salts: CallSalts,
    pub(crate) fields: CallFields,
    pub(crate) effect: EffectClass,
    pub(crate) label: Label,
    pub(crate) digest: CallDigest,
    pub(crate) result_bytes_max: usize,
    pub(crate) read_only: bool,
    pub(crate) wall_ms_max: Option<u64>,
    /// What must be so when it runs.
    pub(crate) conditions: Vec<Condition>,
}

/// What goes on once a record is durable.
pub(crate) enum Waiting {
    Intent(Box<InFlight>, Box<dyn AnyPlan>),
    Reply(Ticket, Box<ToolResult>),
    Ack(Ticket, Result<Ack, Refused>),
}
