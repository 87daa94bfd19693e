//! Policy engines of syscap.
//!
//! An engine implements [`PolicyEngine`](syscap_kernel::policy::PolicyEngine): pure and total,
//! no clock, no I/O. The kernel owns it, asks it and hashes its document itself. For now there
//! is one engine, [`WithinToken`].
#![no_std]
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

extern crate alloc;

mod within_token;

pub use within_token::WithinToken;
