//! Policy engines of syscap.
//!
//! An engine implements [`PolicyEngine`](syscap_kernel::PolicyEngine): pure and total,
//! no clock, no I/O. The kernel owns it, asks it and hashes its document itself.
#![no_std]
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

extern crate alloc;

pub mod document;
mod engine;
pub mod limits;
mod preset;
pub mod risk;
pub mod scenario;
mod seen;
pub mod semantics;
mod truth;
mod value;
mod within_token;

pub use document::{LoadError, LoadFault};
pub use engine::{Explained, Explanation, Policy, Tree, engine};
pub use preset::Preset;
pub use seen::{Seen, argument, time};
pub use truth::Truth;
pub use value::{Other, Value, Values, host_of, path_text};
pub use within_token::WithinToken;
