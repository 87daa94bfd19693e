//! The first steps: the envelope is read, and held against the session's authority.

use alloc::vec::Vec;

use super::{Call, Checked, Decoded, Found, Needs, Stepped, Stopped};
use crate::args::{self, References};
use crate::context::Context;
use crate::diagnostics::{keyed, named, over_budget, unknown_record, with_tools};
use crate::fetch::{Part, Stored};
use crate::registry::{Registered, Registry};
use crate::state::keys::{KeySlot, KeyState, Moment};
use crate::state::sessions::Released;
use syscap_format::{
    Amounts, CallFields, CallSalts, Canonical, Defaults, Dimension, Form, Provenance, Reason,
    Refused, SentHash, Seq, Status, TokenFlags, ToolCall, call_hash, sent_hash,
};

impl<'c, 'k> Call<'c, Decoded<'k>> {
    /// Reads the envelope; what it leaves out comes from the session and the state. It stays in its
    /// place, and the steps are lent it.
    pub(crate) fn decode(
        (received, form): (&'k [u8], Form),
        salts: &CallSalts,
        context: &Context<'k>,
        registry: &'k Registry,
        fields: &'c mut CallFields,
        place: &'k mut Option<ToolCall<'k>>,
    ) -> Stepped<'c, Decoded<'k>> {
        let Context { state, session, agent, .. } = context;
        fields.agent_id = Some(session.agent.clone());
        fields.session = Some(context.number);
        fields.policy_hash = state.policy;
        // Who brought it about the host says, whatever the envelope says or can't be read to say.
        let said_nothing = Provenance::new(context.source, context.now);
        fields.provenance = Some(said_nothing.clone());
        let Some(policy) = state.policy else {
            fields.call_hash = Some(call_hash(&salts.call, received));
            return Err(Refused::new(Reason::PolicyNotInForce).into());
        };
        let defaults = Defaults {
            agent: &session.agent,
            token: session.token_id,
            snapshot: context.head(),
            policy,
            provenance: said_nothing,
        };
        let decoded = ToolCall::decode(received, form, defaults);
        let named = match &decoded {
            Ok(call) => call.named(),
            Err(faulty) => faulty.named(),
        };
        // What a record names, the home knows: what a caller made up is not recorded.
        let known = |from: &&Provenance| from.inputs.iter().all(|input| *input <= state.head.seq);
        let from = named.provenance.filter(known);
        let made_up = from.is_none() && named.provenance.is_some();
        if let Some(from) = from {
            fields.provenance = Some(from.clone());
        }
        let tool = named.tool.and_then(|tool| registry.find(tool));
        fields.tool_id = tool.map(|found| found.manifest.tool.clone());
        fields.manifest = tool.map(|found| found.manifest_id);
        let bound = |token| token == session.token_id || state.tokens.find(&token).is_some();
        fields.capability_token_id = named.token.filter(|token| bound(*token));
        fields.state_snapshot_id = named.snapshot.filter(|snapshot| agent.knows(snapshot));
        match decoded {
            Ok(call) => {
                fields.call_hash = Some(call_hash(&salts.call, call.as_bytes()));
                if made_up {
                    let refused = Refused::new(Reason::BadField).field("provenance.inputs");
                    return Err(refused.allowed("records of this log").into());
                }
                Ok(Self { fields, at: Decoded { call: place.insert(call), tool } })
            }
            Err(faulty) => {
                fields.call_hash = Some(call_hash(&salts.call, received));
                Err(with_tools(faulty.refused().clone(), context).into())
            }
        }
    }

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
    /// What has to be fetched: the first outcome, for a repeat; else the results referred to.
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
        self.at.references = args::references(self.at.call.args())?;
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

    /// Where the call's idempotency key belongs, if it has one.
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
