//! The last step: the cost is held against the budget of the token, of all above it, and of the
//! agent.

use crate::call::context::Context;
use crate::call::diagnostics::{of_account, token_has_room};
use crate::call::fetch::Part;
use crate::call::pieces;
use crate::call::{Approved, Call, Reserved, Stepped};
use syscap_format::{
    Amounts, CallSalts, Canonical, Reason, Refused, VaultWrite, call_digest, sent_hash,
};

impl<'c> Call<'c, Approved<'_>> {
    /// Holds the plan's cost against the budget of the token and of all its ancestors. The
    /// references of the arguments, and their targets, stay where they lie.
    pub(crate) fn reserve(
        self,
        context: &Context<'_>,
        salts: &CallSalts,
        referred: &[Part],
        parts: &[Canonical],
    ) -> Stepped<'c, Reserved> {
        let Self { fields, at: Approved { resolved, plan, hold, kept, approval } } = self;
        has_room(context, &hold).map_err(|refused| resolved.stopped(refused))?;
        let (call, session) = (resolved.call, context.session);
        let (tool, args) = (resolved.found.tool, resolved.args());
        let manifest = &tool.manifest;
        let key = call.key().cloned();
        let digest = call_digest(
            &context.state.home,
            &manifest.tool,
            &tool.manifest_id,
            args,
            &session.agent,
            &session.token_id,
            key.as_ref(),
        );
        let sent = key.is_some().then(|| sent_hash(&salts.args, &manifest.tool, call.args()));
        let cap = kept.result_bytes_max.and_then(|max| usize::try_from(max).ok());
        fields.held = hold;
        let at = Reserved {
            call_effect: plan.class(manifest),
            plan,
            digest,
            agent: session.agent.clone(),
            token: session.token,
            tool: manifest.tool.clone(),
            effect: manifest.effect,
            mode: tool.mode,
            key,
            sent,
            approval,
            filled: call.filled(),
            given: context.label,
            label: manifest.label,
            wall_ms_max: manifest.wall_ms_max,
            result_bytes_max: cap.unwrap_or(usize::MAX).min(manifest.result_limit()),
            read_only: kept.read_only,
            row: match pieces::cut(args, referred, parts) {
                pieces if pieces.is_empty() => {
                    VaultWrite::row(Some(salts), Some(args.as_bytes()), None)
                }
                pieces => VaultWrite::row_of_pieces(salts, &pieces),
            },
        };
        Ok(Call { fields, at })
    }
}

/// The token and all above it, and the agent's account, have room for that.
pub(crate) fn has_room(context: &Context<'_>, hold: &Amounts) -> Result<(), Refused> {
    let spent = context.state.credits.spent(&context.session.agent);
    spent.map_or(Ok(()), |agent| Err(of_account(Reason::Exhausted, agent)))?;
    token_has_room(context, hold)
}
