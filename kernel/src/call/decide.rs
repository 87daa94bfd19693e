//! The sixth step: the policy is asked. Its verdict, its obligations for the run, and the answer to
//! the caller.

use alloc::{boxed::Box, format, string::String};

use crate::approvals::record::RESOURCES_MAX;
use crate::approvals::request::{Answered, Asking, Said, denied, waits};
use crate::approvals::sets;
use crate::call::context::Context;
use crate::call::diagnostics::named;
use crate::call::reserve::has_room;
use crate::call::{Approved, Call, Found, Planned, Stepped, Stopped, arguments};
use crate::history::{Doer, Told};
use crate::policy::{Advice, PolicyEngine, Question};
use crate::tool::{AnyPlan, Demand, Request};
use syscap_format::{
    Amounts, Canonical, Decision, Dimension, Item, Manifest, Obligation, ObligationKind, Reason,
    RefusalKind, Refused, Shadow, Verdict, json,
};

/// The kernel's own engines.
#[derive(Clone, Copy)]
pub(crate) struct Engines<'a> {
    /// The one in force.
    pub(crate) policy: &'a dyn PolicyEngine,
    /// One that is asked for the record only.
    pub(crate) shadow: Option<(syscap_format::PolicyHash, &'a dyn PolicyEngine)>,
}

impl Engines<'_> {
    /// The decisions of both.
    pub(crate) fn ask(&self, question: &Question<'_>) -> (Decision, Option<Shadow>) {
        let shadow = self
            .shadow
            .map(|(policy, engine)| Shadow { policy, decision: sound(engine.decide(question)) });
        (sound(self.policy.decide(question)), shadow)
    }
}

/// It goes into every record of the call: an engine that says too much, or contradicts itself,
/// says no.
pub(crate) fn sound(mut decision: Decision) -> Decision {
    decision.matches.truncate(syscap_format::MATCHES_MAX);
    let asked = core::mem::take(&mut decision.obligations);
    if asked.len() > syscap_format::OBLIGATIONS_MAX {
        return Decision::plain(Verdict::Deny);
    }
    // Of two caps the smaller one counts, whether or not the engine says so itself.
    decision.obligations = Obligation::unite(asked);
    if decision.is_sound() { decision } else { Decision::plain(Verdict::Deny) }
}

/// The obligations of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Its result has at most so many bytes.
    pub(crate) result_bytes_max: Option<u64>,
    /// It changes nothing.
    pub(crate) read_only: bool,
}

/// Takes on what the policy asks of a run that it lets through. Amounts that a run can do without
/// are cut from `hold`; declared needs are not.
///
/// # Errors
/// [`Reason::Obligation`] for the first that can't be kept: a tool that is not told to, or could
/// not, must not be taken to have done so. [`Reason::Reduced`] where the plan needs more than a cut
/// leaves.
pub(crate) fn keep<'o>(
    obligations: impl Iterator<Item = &'o Obligation>,
    manifest: &Manifest,
    needed: &Amounts,
    hold: &mut Amounts,
) -> Result<Kept, Refused> {
    let honours = |kind| manifest.honours.contains(&kind);
    let mut kept = Kept::default();
    for asked in obligations {
        let unkept = || Refused::new(Reason::Obligation).field(asked.kind.name());
        match (asked.kind, asked.name.as_deref(), asked.max) {
            (ObligationKind::ResultCap, _, Some(max)) if honours(ObligationKind::ResultCap) => {
                kept.result_bytes_max = Some(kept.result_bytes_max.map_or(max, |m| m.min(max)));
            }
            (ObligationKind::ReadOnly, _, _)
                if manifest.effect.is_read_only() || honours(ObligationKind::ReadOnly) =>
            {
                kept.read_only = true;
            }
            (ObligationKind::BudgetCut, Some(name), Some(max)) => {
                let dimension = Dimension::from_name(name).filter(|d| d.is_metered());
                let dimension = dimension.ok_or_else(unkept)?;
                let wanted = needed.get(dimension);
                // Another call may need less, so this one can be mended.
                if wanted > max {
                    return Err(Refused::new(Reason::Reduced)
                        .field(name)
                        .got(&format!("{wanted}"))
                        .allowed(&format!("at most {max}")));
                }
                hold.set(dimension, hold.get(dimension).min(max));
            }
            (ObligationKind::Openat2, _, _) if honours(ObligationKind::Openat2) => {}
            // The decision stands in the record: that is the notice. How many calls an approval is
            // for is held against the answer.
            (ObligationKind::Notify | ObligationKind::ApprovalUses, _, _) => {}
            _ => return Err(unkept().got(manifest.tool.as_str())),
        }
    }
    Ok(kept)
}

/// The refusal for the caller of a call that the policy does not allow.
pub(crate) fn refusal(verdict: Verdict, advice: &Advice, args: Item<'_>) -> (Refused, RefusalKind) {
    let (reason, kind) = match (verdict, &advice.argument) {
        (Verdict::Ask, _) => (Reason::Asked, RefusalKind::Asked),
        (Verdict::Defer, _) => (Reason::Deferred, RefusalKind::Deferred),
        (_, Some(_)) => (Reason::Constraint, RefusalKind::Refused),
        (_, None) => (Reason::Denied, RefusalKind::Refused),
    };
    let mut refused = Refused::new(reason);
    if let Some(argument) = &advice.argument {
        refused = refused.field(argument).got(&shown(argument, args));
    }
    if let Some(allowed) = &advice.allowed {
        refused = refused.allowed(allowed);
    }
    (refused, kind)
}

/// The value of an argument, or of a field within it, as JSON.
fn shown(argument: &str, args: Item<'_>) -> String {
    let found = argument.split('.').try_fold(args, Item::get);
    match found {
        Some(value) => value.as_text().map_or_else(|| json::from_data(value), String::from),
        None => String::from("nothing"),
    }
}

/// The question about a call. All in it is the kernel's own.
pub(crate) fn question<'a>(
    context: &'a Context<'_>,
    found: Found<'a>,
    args: Item<'a>,
    plan: &'a dyn AnyPlan,
    demands: &'a [Demand],
    hold: &'a Amounts,
    left: &'a Amounts,
) -> Question<'a> {
    Question {
        agent: &context.session.agent,
        token: context.session.token_id,
        body: context.token.body,
        grant: found.grant,
        manifest: &found.tool.manifest,
        effect: plan.class(&found.tool.manifest),
        args,
        demands,
        described: plan.described(),
        hold,
        left,
        history: Told::by_log(Doer {
            rates: &context.state.rates,
            agent: &context.session.root,
            tool: &found.tool.manifest.tool,
            now: context.now,
        }),
        facts: context.facts,
        source: context.source,
        now: context.now,
    }
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
        let decided = arguments::decided(&found.tool.manifest, args);
        let asked_of = decided.as_ref().map_or(args, Canonical::item);
        let question =
            question(context, found, asked_of, &*plan, &demands, &planned, &context.token.left);
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
                let asking =
                    question_for_person(context, &question, found, args, &decision, &needed);
                let location = plan.location().map(String::from);
                Some(asking.map(|asking| Asking { location, ..asking }))
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

/// The obligations of the run; those for a person's level are met at the approval.
fn by_tool(decision: &Decision) -> impl Iterator<Item = &Obligation> {
    decision.obligations.iter().filter(|asked| !asked.kind.asks_for_a_level())
}

/// The question that a person is asked about a call. Refused is one that would not go on even if it
/// were approved: then nobody is asked. Places come back by themselves.
fn question_for_person(
    context: &Context<'_>,
    question: &Question<'_>,
    found: Found<'_>,
    args: Item<'_>,
    decision: &Decision,
    needed: &Amounts,
) -> Result<Asking, Refused> {
    let mut hold = *question.hold;
    keep(by_tool(decision), question.manifest, needed, &mut hold)?;
    hold.set(Dimension::Concurrent, 0);
    has_room(context, &hold)?;
    let (agent, grant) = (question.agent, question.grant);
    let request = Request { agent, args, grant, token: context.token.body, live: None };
    let inspector = found.tool.tool.inspector(&request)?;
    // One more than can be shown is enough to tell that not all can.
    let shown = question.demands.iter().take(RESOURCES_MAX.saturating_add(1));
    let resources = shown.map(|d| sets::shown(d.dimension, &d.resource)).collect();
    let (effect, call_effect) = (question.manifest.effect, question.effect);
    Ok(Asking { effect, call_effect, resources, location: None, inspector })
}
