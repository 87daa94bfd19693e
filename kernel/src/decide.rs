//! Asking the policy: what it decides, what it asks of the run, what a caller is told.

use alloc::{format, string::String};

use crate::policy::{Advice, PolicyEngine, Question};
use syscap_format::{
    Amounts, Decision, Dimension, Item, Manifest, Obligation, ObligationKind, Reason, RefusalKind,
    Refused, Shadow, Verdict, json,
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
    /// What both say.
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
    let too_many = asked.len() > syscap_format::OBLIGATIONS_MAX;
    // Of two caps the smaller one counts, whether or not the engine says so itself.
    decision.obligations = Obligation::unite(asked);
    let fine = !too_many && decision.is_sound();
    if fine { decision } else { Decision::plain(Verdict::Deny) }
}

/// What a run must keep to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Its result has at most so many bytes.
    pub(crate) result_bytes_max: Option<u64>,
    /// It changes nothing.
    pub(crate) read_only: bool,
}

/// Takes on what the policy asks of a run that it lets through. What a run can do without is
/// cut from `hold`; what it said it would need is not.
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

/// What the caller of a call that the policy does not let through is told.
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
