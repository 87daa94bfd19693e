//! The first step: the envelope is read.

use crate::call::context::Context;
use crate::call::diagnostics::with_tools;
use crate::call::{Call, Decoded, Stepped};
use crate::registry::Registry;
use syscap_format::{
    CallFields, CallSalts, Defaults, Form, Provenance, Reason, Refused, ToolCall, call_hash,
};

impl<'c, 'k> Call<'c, Decoded<'k>> {
    /// Reads the envelope; what it leaves out comes from the session and the state. It stays in its
    /// place, and the steps are lent it.
    pub(crate) fn decode(
        received: &'k [u8],
        form: Form,
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
}
