//! Runs a table.

use alloc::vec::Vec;

use syscap_policy::semantics::{self, Outcome};
use syscap_policy::{Condition, Constraint, Document, Subject, Test, Truth, Values, WithRisk};

use super::mutants::mutants;
use super::{Case, ConstraintCoverage, Failure, Mutation, Report, Survivor, Table, TestCoverage};
use crate::{finding::Finding, questions::diff};

/// Nodes for showing that a change has no effect. One that is not shown is no excuse.
const NODES: u64 = 50_000;

/// A case with what its outcome hangs on.
struct Run<'a> {
    case: &'a Case,
    /// The document with the constraints only that are about the case.
    about: Document,
    outcome: Outcome,
}

/// Holds a document to a table. Each change to a constraint is tried on the cases that the
/// constraint is about, so the work grows with constraints times cases.
#[must_use]
pub fn run(document: &Document, table: &Table) -> Report {
    let runs = runs(document, table);
    Report { mutation: mutation(document, &runs), ..report(document, &runs) }
}

/// Holds a document to a table, and changes nothing: what the report says of changes is empty.
#[must_use]
pub fn run_as_written(document: &Document, table: &Table) -> Report {
    report(document, &runs(document, table))
}

fn runs<'a>(document: &Document, table: &'a Table) -> Vec<Run<'a>> {
    table
        .cases
        .iter()
        .map(|case| {
            let about = only(document, |one| semantics::is_about(&one.subject, &case.given));
            let outcome = semantics::decide(&about, &case.given);
            Run { case, about, outcome }
        })
        .collect()
}

fn report(document: &Document, runs: &[Run<'_>]) -> Report {
    let failed = runs.iter().filter(|run| !run.case.expected.is_met(&run.outcome));
    let failures = failed.map(|run| Failure {
        name: run.case.name.clone(),
        expected: run.case.expected.clone(),
        got: run.outcome.clone(),
    });
    Report {
        cases: runs.len(),
        failures: failures.collect(),
        coverage: document.constraints.iter().map(|one| coverage(document, one, runs)).collect(),
        mutation: Mutation::default(),
    }
}

/// A document with some of its constraints.
fn only(document: &Document, is: impl Fn(&Constraint) -> bool) -> Document {
    let constraints = document.constraints.iter().filter(|one| is(one)).cloned().collect();
    with(document, constraints)
}

/// A document with the same points of risk, and other constraints.
fn with(document: &Document, constraints: Vec<Constraint>) -> Document {
    Document { constraints, risk: document.risk.clone() }
}

fn coverage(document: &Document, of: &Constraint, runs: &[Run<'_>]) -> ConstraintCoverage {
    let mut tests = Vec::new();
    collect(&of.when, &mut tests);
    let about: Vec<&Run<'_>> =
        runs.iter().filter(|run| semantics::is_about(&of.subject, &run.case.given)).collect();
    let tests = tests.into_iter().map(|test| {
        let holds = |run: &&&Run<'_>| {
            let values = WithRisk::new(document, &run.case.given);
            semantics::ask(&test.ask, &values.value(&test.attribute)) == Truth::True
        };
        let held = about.iter().filter(holds).count();
        let not_held = about.len().saturating_sub(held);
        TestCoverage { test: test.clone(), held, not_held }
    });
    let decided = runs.iter().filter(|run| run.outcome.deciding.as_ref() == Some(&of.id));
    ConstraintCoverage {
        id: of.id.clone(),
        matched: runs.iter().filter(|run| run.outcome.matches.contains(&of.id)).count(),
        decided: decided.count(),
        tests: tests.collect(),
    }
}

fn collect<'a>(condition: &'a Condition, tests: &mut Vec<&'a Test>) {
    match condition {
        Condition::Test(test) => tests.push(test),
        Condition::Not(part) => collect(part, tests),
        Condition::All(parts) | Condition::Any(parts) => {
            parts.iter().for_each(|part| collect(part, tests));
        }
    }
}

fn mutation(document: &Document, runs: &[Run<'_>]) -> Mutation {
    let mut mutation = Mutation::default();
    for constraint in &document.constraints {
        for (change, made) in mutants(constraint) {
            let about =
                runs.iter().filter(|run| semantics::is_about(&constraint.subject, &run.case.given));
            let mut passed = about.filter(|run| run.case.expected.is_met(&run.outcome));
            let noticed = passed.any(|run| {
                let mutant = changed(&run.about, constraint, made.as_ref());
                !run.case.expected.is_met(&semantics::decide(&mutant, &run.case.given))
            });
            if noticed {
                mutation.killed = mutation.killed.saturating_add(1);
            } else if is_equivalent(document, constraint, made.as_ref()) {
                mutation.equivalent = mutation.equivalent.saturating_add(1);
            } else {
                let constraint = constraint.id.clone();
                mutation.survivors.push(Survivor { constraint, change });
            }
        }
    }
    mutation
}

/// The document with one constraint changed, or left out.
fn changed(document: &Document, of: &Constraint, made: Option<&Constraint>) -> Document {
    let constraints = document
        .constraints
        .iter()
        .filter_map(|one| if one.id == of.id { made.cloned() } else { Some(one.clone()) });
    with(document, constraints.collect())
}

/// True if a change is shown to have no effect on any call.
fn is_equivalent(document: &Document, of: &Constraint, made: Option<&Constraint>) -> bool {
    // A change shows only in calls that the constraint is about: those of other tools are none.
    let near = only(document, |one| match (&one.subject, &of.subject) {
        (Subject::Tool(a), Subject::Tool(b)) => a == b,
        _ => true,
    });
    matches!(diff(&near, &changed(&near, of, made), NODES), Finding::Holds { .. })
}
