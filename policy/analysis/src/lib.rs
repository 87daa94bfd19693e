//! Analysis of documents, over all calls at once.
//!
//! No solver is needed. A test is about one attribute and constants, so the tests of a document
//! tell only finitely many classes of values of each attribute apart; one value stands for each
//! class, and a search goes through them, cut short wherever the verdict is settled already.
//! Answers are exact: a witness is a scenario that the definition of a document's meaning was
//! asked about again, and "holds" means that no scenario was left out. The work may grow with
//! the number of combinations, so it is limited, and then the answer is that it is not known.
//!
//! Variables are independent of each other: each attribute, except for the tool, its class and its
//! risk, for the time, its hour and its day, and for the fields of one fact or argument. So a
//! scenario may be one that a given set of tools never brings about, such as a tool of another
//! class than its manifest says; nothing that can come about is left out.
//!
//! ```
//! use syscap_analysis::{Finding, NODES_DEFAULT, diff};
//! use syscap_policy::{Policy, Preset};
//!
//! let (narrow, wide) = (Policy::preset(Preset::ReadOnly)?, Policy::preset(Preset::Standard)?);
//! let Finding::Fails(shown) = diff(narrow.written(), wide.written(), NODES_DEFAULT) else {
//!     panic!("they say the same")
//! };
//! assert_ne!(shown.first.verdict, shown.second.verdict);
//! # Ok::<(), syscap_policy::LoadError>(())
//! ```
//!
//! Beside that stand [`table`] tests, which hold a document to cases, and [`learn`], which
//! proposes the least capability under which recorded work could have been done.
#![no_std]
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

extern crate alloc;

mod classes;
mod finding;
mod formula;
pub mod learn;
mod lints;
mod problem;
mod questions;
pub mod scenario;
mod search;
pub mod table;
mod variable;
mod witness;

pub use finding::{Difference, Finding, NODES_DEFAULT, Proof, Reach, Witness};
pub use lints::{Lint, LintKind, lints};
pub use questions::{diff, not_looser, only, only_of, who_can};

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "tests")]
mod tests;
