//! Decisions and obligations as JSON, obligations as documents write them.

use syscap::analysis::table::Expected;
use syscap::format::{ConstraintId, Decision, Obligation, ObligationKind, Verdict};
use syscap::policy::semantics::Outcome;

use crate::output::{Object, array, quote};

/// The decision.
pub(super) fn decision(decision: &Decision) -> String {
    let Decision { verdict, deciding, matches, match_count, obligations, .. } = decision;
    fields(*verdict, deciding.as_ref(), matches, obligations)
        .uint("match_count", *match_count)
        .finish()
}

/// A document's outcome for a call.
pub(super) fn outcome(outcome: &Outcome) -> String {
    let Outcome { verdict, deciding, matches, obligations } = outcome;
    fields(*verdict, deciding.as_ref(), matches, obligations).finish()
}

/// The expected outcome of a case, as far as it says.
pub(super) fn expected(expected: &Expected) -> String {
    let Expected { verdict, deciding, obligations, matches } = expected;
    let mut object = Object::new().text("verdict", verdict.name());
    if let Some(deciding) = deciding {
        let id = deciding.as_ref().map_or("null".to_owned(), |id| quote(id.as_str()));
        object = object.json("deciding", &id);
    }
    if let Some(asked) = obligations {
        object = object.json("obligations", &array(asked.iter().map(obligation)));
    }
    if let Some(ids) = matches {
        object = object.json("matches", &array(ids.iter().map(|id| quote(id.as_str()))));
    }
    object.finish()
}

fn fields(
    verdict: Verdict,
    deciding: Option<&ConstraintId>,
    matches: &[ConstraintId],
    obligations: &[Obligation],
) -> Object {
    let object = Object::new().text("verdict", verdict.name());
    let object = match deciding {
        Some(id) => object.shown("deciding", id),
        None => object.json("deciding", "null"),
    };
    object
        .json("matches", &array(matches.iter().map(|id| quote(id.as_str()))))
        .json("obligations", &array(obligations.iter().map(obligation)))
}

fn obligation(obligation: &Obligation) -> String {
    let Obligation { kind, name, max } = obligation;
    let (name_key, max_key) = match kind {
        ObligationKind::ResultCap => ("name", "bytes"),
        ObligationKind::BudgetCut => ("dimension", "max"),
        ObligationKind::Approval => ("level", "max"),
        ObligationKind::Notify => ("topic", "max"),
        ObligationKind::ReadOnly | ObligationKind::ApprovalUses | ObligationKind::Openat2 => {
            ("name", "max")
        }
    };
    let object = Object::new().text("type", kind.name());
    let object = match name {
        Some(name) => object.text(name_key, name),
        None => object,
    };
    match max {
        Some(max) => object.uint(max_key, *max),
        None => object,
    }
    .finish()
}

/// `ask by standard.id, with approval elevated`.
pub(super) fn said(
    verdict: Verdict,
    deciding: Option<&ConstraintId>,
    obligations: &[Obligation],
) -> String {
    let by = deciding.map_or_else(|| "default".to_owned(), ToString::to_string);
    let with: Vec<String> = obligations.iter().map(ToString::to_string).collect();
    let with = if with.is_empty() { String::new() } else { format!(", with {}", with.join(", ")) };
    format!("{verdict} by {by}{with}")
}

/// The same of a decision.
pub(super) fn said_of(decision: &Decision) -> String {
    said(decision.verdict, decision.deciding.as_ref(), &decision.obligations)
}
