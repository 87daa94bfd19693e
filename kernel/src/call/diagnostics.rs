//! Diagnostics: what callers are told where a call does not fit what the kernel knows: tools,
//! policy, snapshot, records, keys, budget. All of it is the caller's own, or was given to it.

use alloc::{format, string::String, vec::Vec};

use crate::{authority::tokens::TokenView, call::context::Context};
use syscap_format::{
    AgentId, Amounts, Dimension, Reason, Refused, Seq, ToolCall, summary::summary,
};

/// Most records that a refusal names, of those that a reference could have meant.
const RECORDS_SHOWN_MAX: usize = 8;

/// For a refusal about the tool's name: adds the tools that the session's token grants.
pub(crate) fn with_tools(refused: Refused, context: &Context<'_>) -> Refused {
    if refused.is_about("tool_id") {
        let names = context.token.body.grants.names(refused.got_text().unwrap_or_default());
        return refused.allowed(&names);
    }
    refused
}

/// The policy and the snapshot that the call names, or the token is bound to, must be those in
/// force.
pub(crate) fn named(call: &ToolCall<'_>, context: &Context<'_>) -> Result<(), Refused> {
    let bound = context.token.body.policy;
    let in_force = context.state.policy;
    if Some(call.policy()) != in_force || (bound.is_some() && bound != in_force) {
        let refused = Refused::new(Reason::PolicyMismatch);
        return Err(match in_force {
            // The token is for another policy: nothing that the call names would help.
            Some(policy) if policy == call.policy() => refused.field("capability_token_id"),
            Some(policy) => refused.field("policy_hash").got(&call.policy()).allowed(&policy),
            None => Refused::new(Reason::PolicyNotInForce),
        });
    }
    if !context.agent.knows(&call.snapshot()) {
        let refused = Refused::new(Reason::UnknownSnapshot).field("state_snapshot_id");
        return Err(refused.got(&call.snapshot()).allowed(&context.head()));
    }
    Ok(())
}

/// A refusal for what the idempotency key stands for.
pub(crate) fn keyed(reason: Reason) -> Refused {
    Refused::new(reason).field("idempotency_key")
}

/// A record that was not given to this session, and those that were: the nearest first.
pub(crate) fn unknown_record(
    mut wanted: impl Iterator<Item = Seq>,
    context: &Context<'_>,
) -> Refused {
    let session = context.session;
    let refused = Refused::new(Reason::UnknownReference).field("$ref.record");
    let Some(unknown) = wanted.find(|record| session.released(*record).is_none()) else {
        return refused;
    };
    let durable = |record: &Seq| *record <= context.durable;
    let mut given: Vec<Seq> = session.all_released().filter(durable).collect();
    given.sort_by_key(|record| record.get().abs_diff(unknown.get()));
    let allowed = match given.is_empty() {
        true => String::from("nothing"),
        false => {
            let shown = given.iter().take(RECORDS_SHOWN_MAX).map(|record| format!("{record}"));
            format!("one of: {}", summary(shown))
        }
    };
    refused.got(&unknown).allowed(&allowed)
}

/// A refusal for want of an agent's credits: it names whose account that is.
pub(crate) fn of_account(reason: Reason, agent: &AgentId) -> Refused {
    Refused::new(reason).field(&format_args!("credits of {agent}"))
}

/// The token, and all above it, have room for that.
pub(crate) fn token_has_room(context: &Context<'_>, hold: &Amounts) -> Result<(), Refused> {
    if context.token.exhausted {
        return Err(exhausted(&context.token, hold));
    }
    let lacks = context.token.lacks(hold);
    lacks.map_or(Ok(()), |lacks| Err(over_budget(context, lacks, hold.get(lacks))))
}

/// A token ran out: in the first dimension that it had, and of which nothing is left.
fn exhausted(token: &TokenView<'_>, hold: &Amounts) -> Refused {
    let mut had = token.body.budget.amounts().iter();
    let gone = had.find(|(d, limit)| *limit > 0 && token.left.get(*d) == 0);
    let refused = Refused::new(Reason::Exhausted);
    let Some((gone, limit)) = gone else { return refused.field("measured time") };
    let allowed = format_args!("nothing is left of {limit}");
    refused.field(gone.name()).got(&hold.get(gone)).allowed(&allowed)
}

/// The rest of a dimension, where a call would need more.
pub(crate) fn over_budget(context: &Context<'_>, lacks: Dimension, wanted: u64) -> Refused {
    // Places come back as calls end; but where there is none at all, none comes back.
    let places = context.token.body.budget.amounts().get(Dimension::Concurrent);
    let reason = match lacks {
        Dimension::Concurrent if places > 0 => Reason::ConcurrencyLimit,
        _ => Reason::OverBudget,
    };
    let refused = match context.state.credits.least(&context.session.agent) {
        // The account lacks it, and not the token.
        Some((agent, left)) if lacks == Dimension::CreditsMicro && left < wanted => {
            of_account(reason, agent)
        }
        _ => Refused::new(reason).field(lacks.name()),
    };
    let (refused, left) = (refused.got(&wanted), context.token.left.get(lacks));
    match lacks {
        // Nobody has asked for so much: it is the most that the run may take.
        Dimension::WallUs | Dimension::CpuUs => {
            refused.allowed(&format_args!("{left}: a call sets its tool's limit aside"))
        }
        _ => refused.allowed(&left),
    }
}
