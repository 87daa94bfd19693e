//! The last steps: arguments resolved, a plan made and held against scopes, policy and budget.

use alloc::{borrow::Cow, boxed::Box};

use super::asking::{Answered, Asking, Said, denied, waits};
use super::question::question;
use super::{Approved, Call, Checked, Found, Planned, Reserved, Resolved, Stepped, Stopped};
use crate::context::Context;
use crate::decide::{Engines, keep, refusal};
use crate::diagnostics::{named, of_account, token_has_room};
use crate::fetch::Part;
use crate::policy::Question;
use crate::state::sets::shown;
use crate::tool::{Demand, Demands, Live, Request};
use crate::{args, pieces};
use syscap_format::{
    Amounts, CallSalts, Canonical, Decision, Dimension, Item, Manifest, Obligation, Reason,
    RefusalKind, Refused, ScopeDimension, ToolGrant, VaultWrite, Verdict, args_hash, call_digest,
    sent_hash,
};

impl<'c, 'k> Call<'c, Checked<'k>> {
    /// Puts fetched results in the place of references, checks the arguments against the
    /// manifest, adds defaults, and commits to what came of it.
    pub(crate) fn resolve(
        self,
        parts: &[Canonical],
        salts: &CallSalts,
    ) -> Stepped<'c, Resolved<'k>> {
        let Self { fields, at: Checked { call, found, references } } = self;
        let manifest = &found.tool.manifest;
        let sent = call.args();
        let resolved = args::resolve(sent, &references, parts)?;
        let given = resolved.as_ref().map_or(sent, Canonical::item);
        let args = args::conform(manifest, given)?.or(resolved);
        let at = Resolved { call, found, args, sent: None };
        let hash = args_hash(&salts.args, &manifest.tool, &found.tool.manifest_id, at.args());
        fields.args_hash = Some(hash);
        Ok(Call { fields, at })
    }
}

impl<'c, 'k> Call<'c, Resolved<'k>> {
    /// Lets the tool parse the arguments and holds the plan against the token's scopes.
    pub(crate) fn plan(self, context: &Context<'k>, live: Live) -> Stepped<'c, Planned<'k>> {
        let Self { fields, at } = self;
        let (tool, grant) = (at.found.tool, at.found.grant);
        let (agent, token) = (&context.session.agent, context.token.body);
        let request = Request { agent, args: at.args(), grant, token, live: Some(live) };
        let plan = tool.tool.plan(&request).map_err(|refused| at.stopped(refused))?;
        // Asked once: scopes, policy and budget see the same demands.
        let Demands { resources: demands, hold: needed } = plan.demands().clone();
        compared(&tool.manifest, &demands, plan.untouched())
            .and_then(|()| in_scope(&demands, grant))
            .map_err(|refused| at.stopped(refused))?;
        let hold = tool.manifest.hold_for(&needed);
        let at = Planned { resolved: at, plan, demands, needed, hold };
        Ok(Call { fields, at })
    }
}

/// Holds the plan against what its tool declares: a token's scope in a declared dimension bounds
/// nothing unless the plan names a resource there, or says that the call touches none.
fn compared(manifest: &Manifest, demands: &[Demand], untouched: &[&str]) -> Result<(), Refused> {
    let is_compared = |declared: &str| {
        untouched.contains(&declared)
            || demands.iter().any(|d| ScopeDimension::compares(d.dimension, declared))
    };
    let mut declared = manifest.dimensions.iter().map(|declared| &**declared);
    match declared.find(|declared| !is_compared(declared)) {
        None => Ok(()),
        Some(declared) => Err(Refused::new(Reason::NotCompared).field(declared)),
    }
}

fn in_scope(demands: &[Demand], grant: &ToolGrant) -> Result<(), Refused> {
    for demand in demands {
        let scope = grant.scope(demand.dimension);
        if !scope.is_some_and(|scope| scope.permits(&demand.resource)) {
            let allowed =
                scope.map_or(Cow::Borrowed("nothing"), |s| s.advice(&demand.resource).into());
            return Err(Refused::new(Reason::OutOfScope)
                .field(demand.argument)
                .got(&format_args!("{:#}", demand.resource))
                .allowed(&allowed));
        }
    }
    Ok(())
}

impl<'c, 'k> Call<'c, Planned<'k>> {
    /// Asks the kernel's own engines.
    pub(crate) fn decide(
        self,
        context: &Context<'k>,
        engines: Engines<'_>,
        answered: &Answered<'_>,
    ) -> Stepped<'c, Approved<'k>> {
        let Self { fields, at: Planned { resolved, plan, demands, needed, mut hold } } = self;
        named(resolved.call, context).map_err(|refused| resolved.stopped(refused))?;
        let (found, args) = (resolved.found, resolved.args());
        let planned = hold;
        let costs = (&demands[..], &planned, &context.token.left);
        let decided = args::decided(&found.tool.manifest, args);
        let asked_of = decided.as_ref().map_or(args, Canonical::item);
        let question = question(context, found, (asked_of, &*plan), costs);
        let (decision, shadow) = engines.ask(&question);
        fields.head = Some(context.head()).filter(|head| *head != resolved.call.snapshot());
        fields.shadow = shadow;
        let (mut approval, mut asking) = (None, None);
        let mut keep = |asked: &mut dyn Iterator<Item = &Obligation>| {
            keep(asked, question.manifest, &needed, &mut hold)
                .map_err(|refused| (refused, RefusalKind::Refused))
        };
        let ask_for = |verdict| match verdict {
            Verdict::Ask => {
                Some(what_is_asked(context, &question, (found, args), (&decision, &needed)))
            }
            _ => None,
        };
        let said = answered.to(&decision).filter(|_| decision.verdict == Verdict::Ask);
        let kept = match (decision.verdict, said) {
            (Verdict::Allow | Verdict::Degrade, _) => keep(&mut decision.obligations.iter()),
            // A person said yes to this very call, or to such as it, and the policy still asks for
            // no more.
            (Verdict::Ask, Some(Said::Granted(yes))) => {
                approval = Some(yes);
                keep(&mut by_tool(&decision))
            }
            (Verdict::Ask, Some(Said::Waits(ask))) => Err((waits(ask), RefusalKind::Asked)),
            (Verdict::Ask, Some(Said::Denied(ask, why))) => {
                Err((denied(ask, why.as_deref()), RefusalKind::Refused))
            }
            (verdict, _) => match ask_for(verdict) {
                Some(Err(refused)) => Err((refused, RefusalKind::Refused)),
                asked => {
                    asking = asked.and_then(Result::ok).map(Box::new);
                    Err(refusal(verdict, &engines.policy.advise(&question, &decision), args))
                }
            },
        };
        fields.decision = Some(decision);
        match kept {
            Ok(kept) => Ok(Call { fields, at: Approved { resolved, plan, hold, kept, approval } }),
            Err((refused, kind)) => Err(Stopped { kind, asking, ..resolved.stopped(refused) }),
        }
    }
}

/// The token and all above it, and the agent's account, have room for that.
fn has_room(context: &Context<'_>, hold: &Amounts) -> Result<(), Refused> {
    let spent = context.state.credits.spent(&context.session.agent);
    spent.map_or(Ok(()), |agent| Err(of_account(Reason::Exhausted, agent)))?;
    token_has_room(context, hold)
}

/// What is asked of the run: who lets it run is seen to where it is approved.
fn by_tool(decision: &Decision) -> impl Iterator<Item = &Obligation> {
    decision.obligations.iter().filter(|asked| !asked.kind.asks_for_a_level())
}

/// What a person is asked about a call. Refused is one that would not go on even if it were
/// approved: then nobody is asked. Places come back by themselves.
fn what_is_asked(
    context: &Context<'_>,
    question: &Question<'_>,
    (found, args): (Found<'_>, Item<'_>),
    (decision, needed): (&Decision, &Amounts),
) -> Result<Asking, Refused> {
    let mut hold = *question.hold;
    keep(by_tool(decision), question.manifest, needed, &mut hold)?;
    hold.set(Dimension::Concurrent, 0);
    has_room(context, &hold)?;
    let (agent, grant) = (question.agent, question.grant);
    let request = Request { agent, args, grant, token: context.token.body, live: None };
    let inspector = found.tool.tool.inspector(&request)?;
    let resources = question.demands.iter().map(|d| shown(d.dimension, &d.resource)).collect();
    let (effect, call_effect) = (question.manifest.effect, question.effect);
    Ok(Asking { effect, call_effect, resources, inspector })
}

impl<'c> Call<'c, Approved<'_>> {
    /// Holds the plan's cost against the budget of the token and of all its ancestors. What the
    /// arguments refer to, and what that is, is kept where it lies.
    pub(crate) fn reserve(
        self,
        context: &Context<'_>,
        salts: &CallSalts,
        (referred, parts): (&[Part], &[Canonical]),
    ) -> Stepped<'c, Reserved> {
        let Self { fields, at: Approved { resolved, plan, hold, kept, approval } } = self;
        has_room(context, &hold).map_err(|refused| resolved.stopped(refused))?;
        let (call, session) = (resolved.call, context.session);
        let (tool, args) = (resolved.found.tool, resolved.args());
        let manifest = &tool.manifest;
        let key = call.key().cloned();
        let digest = call_digest(
            &context.state.home,
            (&manifest.tool, &tool.manifest_id),
            args,
            (&session.agent, &session.token_id),
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
            given: session.label,
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
