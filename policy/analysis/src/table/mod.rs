//! Table tests: cases with what must come of them, and how much of a document they test.
//!
//! A table is `{"v": 1, "cases": [..]}` in JSON or canonical CBOR. A case is `{"name", "given",
//! "verdict", "deciding"?, "obligations"?, "matches"?}`: a [scenario](crate::scenario), the
//! verdict by name, and, where the case is about them, the constraint that decides (`null`:
//! none), the obligations as documents write them, and the ids of all that match. Unknown keys
//! are errors.
//!
//! Beside what fails, a report says what the table leaves untested: constraints that never
//! matched or never decided, tests that were never seen true or never seen anything else, and
//! changes to the document that no case notices.

mod mutants;
mod read;
mod report;
mod run;

use alloc::{boxed::Box, vec::Vec};

pub use mutants::Change;
pub use report::{ConstraintCoverage, Failure, Mutation, Report, Survivor, TestCoverage};
pub use run::{run, run_as_written};
use syscap_format::{ConstraintId, Obligation, Verdict};
use syscap_policy::{Scenario, ScenarioError, semantics::Outcome};

/// Longest table, in bytes: cases are written by hand, or a few thousand by a tool.
pub const TABLE_BYTES_MAX: usize = 16 << 20;
/// Most cases of one table: each is evaluated for each change to the document.
pub const CASES_MAX: usize = 10_000;

/// Cases to hold a document to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The cases, in their order.
    pub cases: Vec<Case>,
}

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name, for people.
    pub name: Box<str>,
    /// The call.
    pub given: Scenario,
    /// The expected outcome.
    pub expected: Expected,
}

/// The expected outcome of a case. A field that is `None` is not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The verdict.
    pub verdict: Verdict,
    /// The constraint that decides; within, `None` for none at all.
    pub deciding: Option<Option<ConstraintId>>,
    /// The obligations, united.
    pub obligations: Option<Vec<Obligation>>,
    /// All that match, sorted.
    pub matches: Option<Vec<ConstraintId>>,
}

impl Expected {
    /// True if the outcome is as expected.
    #[must_use]
    pub fn is_met(&self, outcome: &Outcome) -> bool {
        let deciding = self.deciding.as_ref();
        let (asked, matches) = (self.obligations.as_ref(), self.matches.as_ref());
        self.verdict == outcome.verdict
            && deciding.is_none_or(|deciding| *deciding == outcome.deciding)
            && asked.is_none_or(|asked| *asked == outcome.obligations)
            && matches.is_none_or(|matches| *matches == outcome.matches)
    }
}

/// One kind of mistake in a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableFault {
    /// More bytes than [`TABLE_BYTES_MAX`], or more cases than [`CASES_MAX`].
    #[error("too large")]
    Size,
    /// The text is not JSON.
    #[error("this is not JSON")]
    Json,
    /// The bytes are not canonical CBOR.
    #[error("this is not canonical CBOR")]
    Cbor,
    /// Another version of tables than 1.
    #[error("only version 1 is known")]
    Version,
    /// A key that is not one of those that can stand there.
    #[error("an unknown key")]
    UnknownKey,
    /// A key that must be there is not.
    #[error("a key is missing")]
    MissingKey,
    /// A value of another type or form than what must stand there.
    #[error("a value that can't stand here")]
    Value,
    /// The scenario of a case.
    #[error(transparent)]
    Scenario(ScenarioError),
}

/// A mistake in a table, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {fault}: {key}")]
pub struct TableError {
    /// The fault.
    pub fault: TableFault,
    /// The key, or the text, that was wrong.
    pub key: Box<str>,
    /// Its place, such as `cases[3].verdict`; for a text that is not JSON `byte N`.
    pub place: Box<str>,
}

#[cfg(test)]
mod tests;
