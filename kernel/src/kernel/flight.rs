//! Calls that wait: for the host, for a record to be durable, for their run.

use alloc::{boxed::Box, vec::Vec};

use super::events::{Ack, Submit};
use crate::{
    call::follow::Seen, resolve::Lookup, state::tokens::TokenIndex, ticket::Ticket, tool::AnyPlan,
};
use syscap_format::{
    envelope::ToolResult,
    id::{AgentId, CallDigest, Leaf, Seq, ToolId},
    label::Label,
    manifest::EffectClass,
    reason::Refused,
    record::CallFields,
    time::UnixMillis,
    vault::CallSalts,
};

/// Pairs of intent and outcome.
pub(super) type Wanted = Vec<(Seq, Seq)>;

/// A call that waits for the host.
pub(super) struct Parked {
    pub(super) submit: Submit,
    pub(super) waits_for: Awaited,
}

pub(super) enum Awaited {
    /// Entries of the vault; with what links led to, where that is known already.
    Vault(Wanted, Option<Seen>),
    /// What links lead to. Entries that were fetched before are fetched again: they can be large.
    Links(Lookup),
}

/// The kernel's half of a call that has an intent.
pub(super) struct InFlight {
    pub(super) ticket: Ticket,
    pub(super) leaf: Leaf,
    /// When the call was admitted.
    pub(super) since: UnixMillis,
    pub(super) session: Seq,
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
}

/// What goes on once a record is durable.
pub(super) enum Waiting {
    Intent(Box<InFlight>, Box<dyn AnyPlan>),
    Reply(Ticket, Box<ToolResult>),
    Ack(Ticket, Result<Ack, Refused>),
}
