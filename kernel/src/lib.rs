//! The reference monitor of syscap: every tool call of an agent goes through here, or does not
//! happen.
//!
//! Sans-io: [`kernel::Kernel`] is a deterministic fold. The host passes events, clock readings
//! and random salts in, and carries effects out; this crate has no I/O, no clock, no randomness
//! and no `unsafe`, and builds without the standard library.
//!
//! What goes in and out, and every name, is declared in `syscap-format`.
//!
//! `examples/drive.rs` drives it by hand, from an empty home to a call and what is refused.
//!
//! Reading order: [`tool`], [`registry`], [`resolve`], [`probe`], [`policy`], [`history`] (what is
//! asked), [`kernel`] (what happens), [`store`] (what lasts), [`halt`] (when it stops).
#![no_std]
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

extern crate alloc;

mod args;
mod call;
mod context;
mod decide;
mod diagnostics;
pub mod fetch;
pub mod halt;
pub mod history;
pub mod inspect;
pub mod kernel;
mod lookups;
mod meter;
mod pieces;
pub mod policy;
pub mod ports;
pub mod probe;
pub mod registry;
mod requests;
pub mod resolve;
mod state;
pub mod store;
mod ticket;
pub mod time;
pub mod tool;
