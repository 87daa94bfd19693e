//! Policy engines of syscap.
//!
//! An engine implements [`PolicyEngine`](syscap_kernel::PolicyEngine): pure and total,
//! no clock, no I/O. The kernel owns it, asks it and hashes its document itself.
#![no_std]
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

extern crate alloc;

mod document;
mod engine;
pub mod limits;
mod preset;
pub mod risk;
mod scenario;
mod seen;
pub mod semantics;
mod truth;
mod value;
mod within_token;

pub use document::{
    Ask, Attribute, Condition, Constant, Constraint, Document, Effect, LoadError, LoadFault,
    OnFail, Row, Subject, Test, Type, Varies,
};
pub use engine::{Explained, Explanation, Policy, Tree, engine};
pub use preset::Preset;
pub use risk::WithRisk;
pub use scenario::{Given, Scenario, ScenarioError, ScenarioFault};
pub use seen::{Seen, argument, time};
pub use truth::Truth;
pub use value::{Other, Value, Values, host_of, path_text};
pub use within_token::WithinToken;
