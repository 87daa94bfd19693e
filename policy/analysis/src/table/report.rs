//! The report on a table.

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use syscap_format::ConstraintId;
use syscap_policy::{Test, semantics::Outcome};

use super::{Change, Expected};

/// The results of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How many cases there were.
    pub cases: usize,
    /// The failed cases.
    pub failures: Vec<Failure>,
    /// The coverage of each constraint, in the order of their ids.
    pub coverage: Vec<ConstraintCoverage>,
    /// Which changes to the document were noticed.
    pub mutation: Mutation,
}

/// A case that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The case.
    pub name: Box<str>,
    /// The expected outcome.
    pub expected: Expected,
    /// The actual outcome.
    pub got: Outcome,
}

/// The coverage of one constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstraintCoverage {
    /// The constraint.
    pub id: ConstraintId,
    /// In how many cases it matched.
    pub matched: usize,
    /// In how many cases it decided.
    pub decided: usize,
    /// Its tests, in the order in which they are written.
    pub tests: Vec<TestCoverage>,
}

/// The coverage of one test, in cases to which its constraint is applicable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestCoverage {
    /// The test.
    pub test: Test,
    /// In how many cases it held.
    pub held: usize,
    /// In how many cases it did not hold, or that could not be said.
    pub not_held: usize,
}

impl TestCoverage {
    /// True if both answers were seen.
    #[must_use]
    pub const fn is_covered(&self) -> bool {
        self.held > 0 && self.not_held > 0
    }
}

/// How many small changes to the document some case notices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mutation {
    /// Changes by which a case fails that did not before.
    pub killed: usize,
    /// Changes that analysis shows to change no verdict and no obligation: they don't count.
    pub equivalent: usize,
    /// Changes that no case notices.
    pub survivors: Vec<Survivor>,
}

impl Mutation {
    /// Noticed changes in thousandths of those that count; 1000 where none counts.
    pub fn permille(&self) -> usize {
        let counted = self.killed.saturating_add(self.survivors.len());
        self.killed.saturating_mul(1_000).checked_div(counted).unwrap_or(1_000)
    }
}

/// A change that no case notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// The constraint that was changed.
    pub constraint: ConstraintId,
    /// The change.
    pub change: Change,
}

impl Report {
    /// True if no case failed.
    #[must_use]
    pub const fn is_passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// How many tests there are, and how many were seen both ways.
    pub fn tests(&self) -> (usize, usize) {
        let all = || self.coverage.iter().flat_map(|constraint| &constraint.tests);
        (all().count(), all().filter(|test| test.is_covered()).count())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed = self.failures.len();
        let passed = self.cases.saturating_sub(failed);
        writeln!(f, "{} cases, {passed} passed, {failed} failed", self.cases)?;
        for failure in &self.failures {
            writeln!(f, "  failed: {failure}")?;
        }
        let seen = |by: fn(&&ConstraintCoverage) -> bool| self.coverage.iter().filter(by).count();
        let matched = seen(|constraint| constraint.matched > 0);
        let decided = seen(|constraint| constraint.decided > 0);
        let all = self.coverage.len();
        writeln!(f, "{all} constraints, {matched} matched, {decided} decided")?;
        for constraint in self.coverage.iter().filter(|constraint| constraint.matched == 0) {
            writeln!(f, "  never matched: {}", constraint.id)?;
        }
        let (tests, covered) = self.tests();
        writeln!(f, "{tests} tests, {covered} seen both true and not")?;
        for constraint in &self.coverage {
            for (n, test) in constraint.tests.iter().enumerate() {
                let missing = match (test.held, test.not_held) {
                    (0, 0) => "never seen",
                    (0, _) => "never seen true",
                    (_, 0) => "only seen true",
                    _ => continue,
                };
                let (id, attribute) = (&constraint.id, &test.test.attribute);
                writeln!(f, "  {missing}: {id} test {n}, {attribute}")?;
            }
        }
        let Mutation { killed, equivalent, survivors } = &self.mutation;
        let (left, score) = (survivors.len(), self.mutation.permille());
        write!(f, "mutation score {score} of 1000: {killed} noticed, {left} not, ")?;
        writeln!(f, "{equivalent} without effect")?;
        for survivor in survivors {
            writeln!(f, "  not noticed: {} {}", survivor.constraint, survivor.change)?;
        }
        Ok(())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, expected, got } = self;
        let id = |id: &Option<ConstraintId>| id.as_ref().map_or("nothing", |id| id.as_str()).into();
        let by: Option<Box<str>> = expected.deciding.as_ref().map(id);
        write!(f, "{name}: expected {}", expected.verdict.name())?;
        if let Some(by) = by {
            write!(f, " by {by}")?;
        }
        if let Some(asked) = &expected.obligations {
            write!(f, " with {asked:?}")?;
        }
        if let Some(matches) = &expected.matches {
            write!(f, " of {matches:?}")?;
        }
        let by = id(&got.deciding);
        write!(f, ", got {} by {by} with {:?}", got.verdict.name(), got.obligations)?;
        write!(f, " of {:?}", got.matches)
    }
}
