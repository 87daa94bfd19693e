//! What callers are told where a call does not fit what the kernel knows: tools, policy, snapshot,
//! records, keys, budget. All of it is the caller's own, or was given to it.

use alloc::{format, string::String, vec::Vec};

use crate::{call::Seat, state::TokenIndex};
use syscap_format::{
    budget::Dimension,
    envelope::ToolCall,
    id::Seq,
    listed::listed,
    reason::{Reason, Refused},
};

/// Most records that a refusal names, of those that a reference could have meant.
const RECORDS_SHOWN_MAX: usize = 8;

/// Where a refusal is about the tool's name: the tools that the session's token grants.
pub(crate) fn with_tools(refused: Refused, seat: &Seat<'_>) -> Refused {
    let body = seat.state.tokens.body(seat.session.token);
    match body.filter(|_| refused.is_about("tool_id")) {
        Some(body) => {
            let names = body.grants.names(refused.what_stood().unwrap_or_default());
            refused.allowed(&names)
        }
        None => refused,
    }
}

/// The policy and the snapshot that the call names, or the token is bound to, must be those in
/// force.
pub(crate) fn named(call: &ToolCall, token: &TokenIndex, seat: &Seat<'_>) -> Result<(), Refused> {
    let bound = seat.state.tokens.body(*token).and_then(|body| body.policy);
    let in_force = seat.state.policy;
    if Some(call.policy()) != in_force || (bound.is_some() && bound != in_force) {
        let refused = Refused::new(Reason::PolicyMismatch);
        return Err(match in_force {
            // The token is for another policy: nothing that the call names would help.
            Some(policy) if policy == call.policy() => refused.field("capability_token_id"),
            Some(policy) => {
                let refused = refused.field("policy_hash").got(&format!("{}", call.policy()));
                refused.allowed(&format!("{policy}"))
            }
            None => refused.field("policy_hash"),
        });
    }
    if !seat.agent.is_some_and(|agent| agent.knows(&call.snapshot())) {
        let refused = Refused::new(Reason::UnknownSnapshot).field("state_snapshot_id");
        let refused = refused.got(&format!("{}", call.snapshot()));
        return Err(match seat.head() {
            Some(head) => refused.allowed(&format!("{head}")),
            None => refused,
        });
    }
    Ok(())
}

/// A refusal for what the idempotency key stands for.
pub(crate) fn keyed(reason: Reason) -> Refused {
    Refused::new(reason).field("idempotency_key")
}

/// A record that was not given to this session, and those that were: the nearest first.
pub(crate) fn unknown_record(wanted: &[Seq], seat: &Seat<'_>) -> Refused {
    let session = seat.session;
    let refused = Refused::new(Reason::UnknownReference).field("$ref.record");
    let Some(unknown) = wanted.iter().find(|record| session.released(**record).is_none()) else {
        return refused;
    };
    let durable = |record: &Seq| *record <= seat.durable;
    let mut given: Vec<Seq> = session.all_released().filter(durable).collect();
    given.sort_by_key(|record| record.get().abs_diff(unknown.get()));
    let allowed = match given.is_empty() {
        true => String::from("nothing"),
        false => {
            let shown = given.iter().take(RECORDS_SHOWN_MAX).map(|record| format!("{record}"));
            format!("one of: {}", listed(shown))
        }
    };
    refused.got(&format!("{unknown}")).allowed(&allowed)
}

/// What is left of a dimension, where a call would need more.
pub(crate) fn over_budget(
    seat: &Seat<'_>,
    token: TokenIndex,
    lacks: Dimension,
    wanted: u64,
) -> Refused {
    Refused::new(Reason::OverBudget)
        .field(lacks.name())
        .got(&format!("{wanted}"))
        .allowed(&format!("{}", seat.state.tokens.left(token).get(lacks)))
}
