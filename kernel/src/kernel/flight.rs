//! Calls that wait: for the host, for a record to be durable, for their run.

use alloc::{boxed::Box, vec::Vec};

use super::events::{Ack, Submit};
use crate::call::follow::Seen;
use crate::fetch::{Fetched, Wanted};
use crate::inspect::{Condition, Inspected};
use crate::resolve::{Found, Lookup};
use crate::state::tokens::TokenIndex;
use crate::ticket::Ticket;
use crate::tool::{AnyPlan, Live};
use syscap_format::{
    AgentId, ArgsHash, CallDigest, CallFields, CallSalts, EffectClass, Label, Leaf, Refused, Seq,
    ToolId, ToolResult, UnixMillis, VaultEntry,
};

/// A call that waits for the host.
pub(super) struct Parked {
    pub(super) submit: Submit,
    pub(super) waits_for: Awaited,
    pub(super) gathered: Gathered,
}

/// What the host brought for a call so far: each is asked for once, as long as what it answers does
/// not change. All of it together is bounded as the call itself is.
#[derive(Default)]
pub(super) struct Gathered {
    /// The parts of results that its arguments refer to, or the first outcome of its idempotency
    /// key.
    pub(super) results: Option<Fetched>,
    /// What the links of an argument lead to.
    pub(super) links: Option<Seen>,
    /// What was seen of what it would change, where that was looked at.
    pub(super) looked: Option<Looked>,
    /// The texts that an answer of a person rests on, by the record that they lie beside.
    pub(super) texts: Option<(Seq, VaultEntry)>,
}

/// What a call would change, as it was seen: for the arguments that are committed to so. `None`
/// where the tool broke off.
pub(super) type Looked = (Option<ArgsHash>, Option<Inspected>);

/// What a call had to wait for.
pub(super) enum Brought {
    Fetched(Fetched),
    Found(Result<Found, Refused>),
    Seen(Option<Inspected>),
}

pub(super) enum Awaited {
    /// A read of the vault.
    Vault(Wanted),
    /// What links lead to.
    Links(Lookup),
    /// What is there that a call with these arguments would change. It is asked about after that.
    /// Links are followed anew then, since much may have happened.
    Look(Option<ArgsHash>),
}

/// The kernel's half of a call that has an intent.
pub(super) struct InFlight {
    pub(super) live: Live,
    pub(super) leaf: Leaf,
    /// When the call was admitted.
    pub(super) since: UnixMillis,
    pub(super) agent: AgentId,
    pub(super) token: TokenIndex,
    pub(super) tool: ToolId,
    pub(super) salts: CallSalts,
    pub(super) fields: CallFields,
    pub(super) effect: EffectClass,
    pub(super) label: Label,
    pub(super) digest: CallDigest,
    pub(super) result_bytes_max: usize,
    pub(super) read_only: bool,
    pub(super) wall_ms_max: Option<u64>,
    /// What must be so when it runs.
    pub(super) conditions: Vec<Condition>,
}

/// What goes on once a record is durable.
pub(super) enum Waiting {
    Intent(Box<InFlight>, Box<dyn AnyPlan>),
    Reply(Ticket, Box<ToolResult>),
    Ack(Ticket, Result<Ack, Refused>),
}
