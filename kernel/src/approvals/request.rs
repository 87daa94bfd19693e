//! Approval requests, and earlier answers to them.

use alloc::{boxed::Box, string::String, vec::Vec};

use crate::approvals::conditions::{Condition, Inspect};
use crate::approvals::sets::Set;
use syscap_format::{Decision, EffectClass, Precondition, Reason, Refused, Seq};

/// The resources and effects of a call that waits for a person.
pub(crate) struct Asking {
    pub(crate) effect: EffectClass,
    pub(crate) call_effect: EffectClass,
    /// All that it would touch, in the plan's order.
    pub(crate) resources: Vec<String>,
    /// The location where it would act.
    pub(crate) location: Option<String>,
    /// The reader of the state that it would change.
    pub(crate) inspector: Option<Box<dyn Inspect>>,
}

/// The answers to a call like this one.
pub(crate) struct Answered<'k> {
    pub(crate) same: Option<Said>,
    /// The standing approvals that cover its resources.
    pub(crate) sets: Vec<(Seq, &'k Set)>,
}

/// The answer to it.
#[derive(Clone)]
pub(crate) enum Said {
    /// No answer yet: it waits under that record.
    Waits(Seq),
    /// Yes, by that record, which is the last one that it took.
    Granted(Yes),
    /// No, to what waited under that record; and why, where that was said.
    Denied(Seq, Option<String>),
}

/// An approval that lets a call through.
#[derive(Clone)]
pub(crate) struct Yes {
    pub(crate) by: Seq,
    /// True if a person of a level gave it.
    pub(crate) of_level: bool,
    /// The preconditions that were shown, and must still hold.
    pub(crate) conditions: Vec<Condition>,
    /// The same as it stands on record.
    pub(crate) recorded: Vec<Precondition>,
}

impl Yes {
    /// By a set, which is for more calls than the one that was shown.
    const fn of_set(by: Seq) -> Self {
        Self { by, of_level: false, conditions: Vec::new(), recorded: Vec::new() }
    }
}

impl Answered<'_> {
    /// The part of it that answers the policy's question. A set answers what was asked when it was
    /// given: where another constraint matches, a person is asked about that.
    pub(crate) fn to(&self, decision: &Decision) -> Option<Said> {
        let set = self.sets.iter().find(|(_, set)| set.answers(decision));
        let set = set.map(|(by, _)| Said::Granted(Yes::of_set(*by)));
        match &self.same {
            Some(Said::Granted(yes)) if yes.of_level || !decision.asks_for_a_level() => {
                self.same.clone()
            }
            Some(Said::Denied(..)) => self.same.clone(),
            Some(Said::Granted(_)) => set,
            None | Some(Said::Waits(_)) => set.or_else(|| self.same.clone()),
        }
    }
}

/// The refusal of a call that a person denied.
pub(crate) fn denied(ask: Seq, why: Option<&str>) -> Refused {
    let refused = about(Reason::ApprovalDenied, ask);
    match why {
        Some(why) => refused.allowed(why),
        None => refused,
    }
}

/// The refusal of a call that waits under that record.
pub(crate) fn waits(ask: Seq) -> Refused {
    about(Reason::Asked, ask).allowed("the same call, once a person has approved it")
}

/// Names the ask that a refusal is about.
fn about(reason: Reason, ask: Seq) -> Refused {
    Refused::new(reason).field("approval").got(&ask)
}

/// Texts that an answer rests on, which only the vault has.
pub(crate) struct WantsTexts(pub(crate) Seq);
