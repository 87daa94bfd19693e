//! Small changes to a constraint, each of which some case should notice.

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use syscap_format::{Obligation, ObligationKind};
use syscap_policy::{Ask, Condition, Constraint, Effect, OnFail};

/// A change of a constraint. Tests are counted from 0 in the order in which they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// An allow became a deny, or a deny an allow.
    Effect,
    /// The constraint was left out.
    Dropped,
    /// A test was replaced by what always holds.
    TestHolds(usize),
    /// A test was replaced by what never holds.
    TestFails(usize),
    /// A test was negated.
    TestNegated(usize),
    /// The integer of a test was made larger by one.
    BoundRaised(usize),
    /// The integer of a test was made smaller by one.
    BoundLowered(usize),
    /// Another `on_fail`.
    OnFail(OnFail),
    /// An obligation was left out.
    Obligation(Obligation),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Effect => f.write_str("allow and deny exchanged"),
            Self::Dropped => f.write_str("left out"),
            Self::TestHolds(test) => write!(f, "test {test} always holds"),
            Self::TestFails(test) => write!(f, "test {test} never holds"),
            Self::TestNegated(test) => write!(f, "test {test} negated"),
            Self::BoundRaised(test) => write!(f, "bound of test {test} raised by one"),
            Self::BoundLowered(test) => write!(f, "bound of test {test} lowered by one"),
            Self::OnFail(on_fail) => write!(f, "on_fail {}", on_fail.name()),
            Self::Obligation(obligation) => write!(f, "without {obligation}"),
        }
    }
}

/// All changes to a constraint, each with what becomes of it; `None` where it is left out.
pub(super) fn mutants(of: &Constraint) -> Vec<(Change, Option<Constraint>)> {
    let mut all = Vec::from([(Change::Dropped, None)]);
    let mut add = |change, made: Constraint| all.push((change, Some(made)));
    add(Change::Effect, flipped(of));
    for on_fail in OnFail::ALL.into_iter().filter(|on_fail| *on_fail != of.on_fail) {
        let made = legal(Constraint { on_fail, ..of.clone() });
        let takes = made.obligations.iter().any(|asked| asked.kind.takes_away());
        if on_fail != OnFail::Degrade || (made.effect == Effect::Deny && takes) {
            add(Change::OnFail(on_fail), made);
        }
    }
    for n in 0..count(&of.when) {
        let with = |change: &dyn Fn(&Condition) -> Option<Condition>| {
            let when = replaced(&of.when, &mut n.clone(), change)?;
            Some(Constraint { when, ..of.clone() })
        };
        let holds = with(&|_| Some(Condition::All(Vec::new())));
        let fails = with(&|_| Some(Condition::Any(Vec::new())));
        let negated = with(&|test| Some(Condition::Not(Box::new(test.clone()))));
        let made = [
            (Change::TestHolds(n), holds),
            (Change::TestFails(n), fails),
            (Change::TestNegated(n), negated),
            (Change::BoundRaised(n), with(&|test| moved(test, 1))),
            (Change::BoundLowered(n), with(&|test| moved(test, -1))),
        ];
        made.into_iter()
            .filter_map(|(change, made)| Some((change, made?)))
            .for_each(|(change, made)| add(change, made));
    }
    for (n, dropped) in of.obligations.iter().enumerate() {
        let mut made = of.clone();
        made.obligations.remove(n);
        let takes = made.obligations.iter().any(|asked| asked.kind.takes_away());
        if of.on_fail != OnFail::Degrade || takes {
            add(Change::Obligation(dropped.clone()), made);
        }
    }
    all
}

fn flipped(of: &Constraint) -> Constraint {
    let (effect, on_fail) = match (of.effect, of.on_fail) {
        (Effect::Allow, on_fail) => (Effect::Deny, on_fail),
        (Effect::Deny, OnFail::Degrade) => (Effect::Allow, OnFail::Block),
        (Effect::Deny, on_fail) => (Effect::Allow, on_fail),
    };
    legal(Constraint { effect, on_fail, ..of.clone() })
}

/// Without the obligations that a document could not have there.
fn legal(mut constraint: Constraint) -> Constraint {
    let (effect, on_fail) = (constraint.effect, constraint.on_fail);
    constraint.obligations.retain(|asked| match (effect, on_fail) {
        (Effect::Deny, OnFail::Ask) => true,
        (Effect::Deny, OnFail::Block | OnFail::Defer) => asked.kind == ObligationKind::Notify,
        _ => !matches!(asked.kind, ObligationKind::Approval | ObligationKind::ApprovalUses),
    });
    constraint
}

/// How many tests there are.
fn count(condition: &Condition) -> usize {
    match condition {
        Condition::Test(_) => 1,
        Condition::Not(part) => count(part),
        Condition::All(parts) | Condition::Any(parts) => parts.iter().map(count).sum(),
    }
}

/// The condition with its `n`th test changed; `None` where that can't be.
fn replaced(
    condition: &Condition,
    n: &mut usize,
    change: &dyn Fn(&Condition) -> Option<Condition>,
) -> Option<Condition> {
    let mut each = |parts: &[Condition]| -> Option<Vec<Condition>> {
        parts.iter().map(|part| replaced(part, n, change)).collect()
    };
    match condition {
        Condition::All(parts) => each(parts).map(Condition::All),
        Condition::Any(parts) => each(parts).map(Condition::Any),
        Condition::Not(part) => Some(Condition::Not(Box::new(replaced(part, n, change)?))),
        Condition::Test(_) => {
            let this = *n == 0;
            // Past the one that is changed it stays beyond the last.
            *n = n.checked_sub(1).unwrap_or(usize::MAX);
            if this { change(condition) } else { Some(condition.clone()) }
        }
    }
}

fn moved(condition: &Condition, by: i128) -> Option<Condition> {
    let Condition::Test(test) = condition else { return None };
    let mut test = test.clone();
    match &mut test.ask {
        Ask::Lt(bound) | Ask::Le(bound) | Ask::Gt(bound) | Ask::Ge(bound) => {
            *bound = bound.checked_add(by)?;
        }
        _ => return None,
    }
    Some(Condition::Test(test))
}
