//! Why a decision came out as it did.

use alloc::{boxed::Box, format, vec::Vec};
use core::fmt;

use syscap_format::{ConstraintId, Decision};

use super::words;
use crate::document::{Condition, Constraint, Document, Effect, OnFail};
use crate::semantics;
use crate::truth::Truth;
use crate::value::Values;

/// A decision, and what each constraint that applies had to do with it. It is for operators: it
/// shows constants of denies, and values of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The decision.
    pub decision: Decision,
    /// The constraints whose subject is the call's, by id.
    pub constraints: Vec<Explained>,
}

/// The part of one applicable constraint in a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The constraint.
    pub id: ConstraintId,
    /// Its effect: it grants or restricts.
    pub effect: Effect,
    /// The verdict where it fails the call.
    pub on_fail: OnFail,
    /// The truth of its condition.
    pub truth: Truth,
    /// True if it matched: an allow that grants, a deny that applies.
    pub matched: bool,
    /// Why, as its author wrote it.
    pub reason: Box<str>,
    /// Its condition.
    pub when: Tree,
}

/// A condition, with what is known of each part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// `all`, `any` or `not`.
    Joint {
        /// The operator.
        op: &'static str,
        /// Its truth.
        truth: Truth,
        /// The parts that it joins.
        parts: Vec<Tree>,
    },
    /// A test.
    Test {
        /// The attribute, the operator and its constants, cut where they are long.
        test: Box<str>,
        /// Its truth.
        truth: Truth,
        /// The attribute's value, cut where it is long.
        seen: Box<str>,
    },
}

impl Tree {
    fn new(condition: &Condition, values: &dyn Values) -> Self {
        let joint = |op, parts: &[Condition]| {
            let truth = semantics::eval(condition, values);
            let parts = parts.iter().map(|part| Self::new(part, values)).collect();
            Self::Joint { op, truth, parts }
        };
        match condition {
            Condition::All(parts) => joint("all", parts),
            Condition::Any(parts) => joint("any", parts),
            Condition::Not(part) => joint("not", core::slice::from_ref(&**part)),
            Condition::Test(test) => {
                let seen = values.value(&test.attribute);
                let truth = semantics::ask(&test.ask, &seen);
                let attribute = words::bare(&format!("{}", test.attribute));
                let shown = format!("{attribute} {}", words::Shown(&test.ask));
                let seen = words::value(&seen).into_boxed_str();
                Self::Test { test: shown.into_boxed_str(), truth, seen }
            }
        }
    }

    /// Its truth.
    pub const fn truth(&self) -> Truth {
        match self {
            Self::Joint { truth, .. } | Self::Test { truth, .. } => *truth,
        }
    }

    fn lay_out(&self, f: &mut fmt::Formatter<'_>, column: usize) -> fmt::Result {
        let known = word(self.truth());
        match self {
            Self::Joint { op, parts, .. } => {
                writeln!(f, "{:column$}{known:<8}{op}", "")?;
                let inner = column.saturating_add(2);
                parts.iter().try_for_each(|part| part.lay_out(f, inner))
            }
            Self::Test { test, seen, .. } => {
                writeln!(f, "{:column$}{known:<8}{test} (is {seen})", "")
            }
        }
    }
}

const fn word(truth: Truth) -> &'static str {
    match truth {
        Truth::False => "no",
        Truth::Unknown => "unknown",
        Truth::True => "yes",
    }
}

/// Says of every applicable constraint what it had to do with the decision.
pub(super) fn explain(document: &Document, values: &dyn Values, decision: Decision) -> Explanation {
    let applicable = document
        .constraints
        .iter()
        .filter(|constraint| semantics::is_about(&constraint.subject, values));
    let one = |constraint: &Constraint| {
        let when = Tree::new(&constraint.when, values);
        Explained {
            id: constraint.id.clone(),
            effect: constraint.effect,
            on_fail: constraint.on_fail,
            truth: when.truth(),
            matched: semantics::is_match(constraint.effect, when.truth()),
            reason: constraint.reason.clone(),
            when,
        }
    };
    Explanation { decision, constraints: applicable.map(one).collect() }
}

impl fmt::Display for Explanation {
    /// The verdict, then each constraint with its condition as a tree, a line each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.decision.verdict)?;
        match &self.decision.deciding {
            Some(id) => write!(f, " by {id}")?,
            None => f.write_str(" by default")?,
        }
        let obligations = &self.decision.obligations;
        for (n, obligation) in obligations.iter().enumerate() {
            write!(f, "{}{obligation}", if n == 0 { ", with " } else { ", " })?;
        }
        writeln!(f)?;
        self.constraints.iter().try_for_each(|one| fmt::Display::fmt(one, f))
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match (self.effect, self.matched) {
            (Effect::Allow, true) => "grants",
            (Effect::Allow, false) => "does not grant",
            (Effect::Deny, true) => "applies",
            (Effect::Deny, false) => "does not apply",
        };
        let (effect, on_fail) = (self.effect.name(), self.on_fail.name());
        writeln!(f, "{effect} {} (on_fail {on_fail}): {outcome}", self.id)?;
        if !self.reason.is_empty() {
            writeln!(f, "  reason: {}", self.reason.escape_debug())?;
        }
        self.when.lay_out(f, 2)
    }
}
