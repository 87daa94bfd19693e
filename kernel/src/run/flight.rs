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

/// The host's lookups for a call so far: each is requested once, as long as its question does not
/// change. All of it together is bounded as the call itself is.
#[derive(Default)]
pub(crate) struct Gathered {
    /// The parts of results that its arguments refer to, or the first outcome of its idempotency
    /// key.
    pub(crate) results: Option<Fetched>,
    /// The targets of an argument's links.
    pub(crate) links: Option<Seen>,
    /// The state that it would change, if that was read.
    pub(crate) looked: Option<Looked>,
    /// The texts that an answer of a person rests on, by the record that they lie beside.
    pub(crate) texts: Option<(Seq, VaultEntry)>,
}

/// The state that a call would change, as it was read for the arguments of this commitment. `None`
/// where the tool broke off.
pub(crate) type Looked = (Option<ArgsHash>, Option<Inspected>);

/// A lookup that a call waits for.
pub(crate) enum Brought {
    Fetched(Box<Fetched>),
    Found(Result<Found, Refused>),
    Seen(Option<Inspected>),
}

pub(crate) enum Awaited {
    /// A read of the vault.
    Vault(Wanted),
    /// The targets of links.
    Links(Lookup),
    /// The state that a call with these arguments would change. It is asked about after that. Links
    /// are followed anew then, since much may have happened.
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
    /// The preconditions of its run.
    pub(crate) conditions: Vec<Condition>,
}

/// The step that follows once a record is durable.
pub(crate) enum Waiting {
    Intent(Box<InFlight>, Box<dyn AnyPlan>),
    Reply(Ticket, Box<ToolResult>),
    Ack(Ticket, Result<Ack, Refused>),
}
