//! syscap's policy beside other people's engines.
//!
//! Cedar is an oracle: what [`cedar`] translates must be decided alike. Cedar and Rego are what
//! `benches/policy.rs` is measured against.

pub mod cedar;
