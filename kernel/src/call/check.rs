//! The second step: the call is held against the session and its token.

use alloc::vec::Vec;

use crate::call::context::Context;
use crate::call::diagnostics::{keyed, named, over_budget, unknown_record};
use crate::call::fetch::{Part, Stored};
use crate::call::reference::{References, references};
use crate::call::{Call, Checked, Decoded, Found, Needs, Stepped, Stopped};
use crate::registry::Registered;
use crate::state::idempotency::{KeySlot, KeyState, Moment};
use crate::state::sessions::Released;
use syscap_format::{
    Amounts, CallSalts, Canonical, Dimension, Reason, Refused, SentHash, Seq, Status, TokenFlags,
    ToolCall, sent_hash,
};

impl<'c, 'k> Call<'c, Decoded<'k>> {
    /// Binding, revocation, freeze, expiry, grant: in this order. The proof came before.
    pub(crate) fn check(self, context: &Context<'k>) -> Stepped<'c, Checked<'k>> {
        let Self { fields, at: Decoded { call, tool } } = self;
        let found = granted(call, tool, context)?;
        Ok(Call { fields, at: Checked { call, found, references: References::default() } })
    }
}

/// The tool and the grant, if the session's token lets the call be made now.
fn granted<'k>(
    call: &ToolCall<'_>,
    tool: Option<&'k Registered>,
    context: &Context<'k>,
) -> Result<Found<'k>, Refused> {
    let session = context.session;
    if *call.agent() != session.agent || call.token() != session.token_id {
        let field = if *call.agent() == session.agent { "capability_token_id" } else { "agent_id" };
        return Err(Refused::new(Reason::NotBound).field(field));
    }
    let name = tool.map_or(call.tool(), |found| found.manifest.tool.as_str());
    let body = context.token.body;
    context.is_live(Some(name)).map_err(|reason| match reason {
        Reason::Expired => Refused::new(reason).field("capability_token_id").got(&body.expires),
        reason => reason.into(),
    })?;
    let about = |reason| Refused::new(reason).field("tool_id").got(name);
    let Some(tool) = tool else {
        return Err(about(Reason::UnknownTool).allowed(&body.grants.names(name)));
    };
    let Some(grant) = body.grants.get(&tool.manifest.tool) else {
        return Err(about(Reason::NotGranted).allowed(&body.grants.names(name)));
    };
    if body.flags.has(TokenFlags::READ_ONLY) && !tool.manifest.effect.is_read_only() {
        return Err(about(Reason::ReadOnlyToken));
    }
    Ok(Found { tool, grant })
}

impl<'c, 'k> Call<'c, Checked<'k>> {
    /// The data to fetch: for a repeat the first outcome; else the results referred to.
    pub(crate) fn needs(mut self, context: &Context<'k>) -> Result<(Self, Needs<'k>), Stopped> {
        // Nothing is looked up, fetched or answered again for a token that has no call left.
        if context.token.lacks(&Amounts::ZERO.with(Dimension::Calls, 1)).is_some() {
            return Err(over_budget(context, Dimension::Calls, 1).into());
        }
        let unconfirmed = context.state.unconfirmed_before;
        let now = Moment { time: context.now, unconfirmed };
        if let Some(slot) = self.key_slot(context)
            && let Some(used) = context.state.keys.get(&slot, now)
        {
            use KeyState::{Done, InFlight, Unknown};
            // An id that is present must be right, also for an answer that is given again.
            named(self.at.call, context)?;
            // The answer was given under the first call's token: another may not permit it, unless
            // its issuer has said that it takes the place of that one.
            if !context.state.tokens.renews(context.session.token, used.token) {
                return Err(keyed(Reason::NotBound).into());
            }
            return match used.state {
                Done(outcome) if outcome <= context.durable => {
                    Ok((self, Needs::Repeat(used, outcome)))
                }
                Unknown(said) if said <= context.durable => {
                    Err(keyed(Reason::OutcomeUnknown).into())
                }
                InFlight | Done(_) | Unknown(_) => Err(keyed(Reason::KeyInFlight).into()),
            };
        }
        self.at.references = references(self.at.call.args())?;
        let wanted = &self.at.references.all;
        if wanted.is_empty() {
            return Ok((self, Needs::Nothing));
        }
        let part = |(record, path): &(Seq, Canonical)| {
            let Released { outcome, intent, result_hash } = context.session.released(*record)?;
            let of = Stored { intent, outcome, result: Some((result_hash, Status::Ok)) };
            Some(Part { of, path: path.clone() })
        };
        let parts: Option<Vec<Part>> = wanted.iter().map(part).collect();
        let records = wanted.iter().map(|(record, _)| *record);
        let parts = parts.ok_or_else(|| unknown_record(records, context))?;
        if parts.iter().any(|part| part.of.outcome > context.durable) {
            return Err(Refused::new(Reason::ReferenceInFlight).field("$ref.record").into());
        }
        Ok((self, Needs::Parts(parts)))
    }

    /// The slot of the call's idempotency key, if it has one.
    fn key_slot(&self, context: &Context<'_>) -> Option<KeySlot> {
        let key = self.at.call.key().cloned()?;
        let tool = self.at.found.tool.manifest.tool.clone();
        Some(KeySlot { agent: context.session.agent.clone(), tool, key })
    }

    /// The commitment to the arguments as sent, by the salt of an earlier call.
    pub(crate) fn sent_by(&self, salts: &CallSalts) -> SentHash {
        sent_hash(&salts.args, &self.at.found.tool.manifest.tool, self.at.call.args())
    }
}
