//! The reference monitor of syscap: every tool call of an agent goes through here, or does not
//! happen.
//!
//! Sans-io: [`kernel::Kernel`] is a deterministic fold. The host passes events, clock readings
//! and random salts in, and carries effects out; this crate has no I/O, no clock, no randomness
//! and no `unsafe`, and builds without the standard library.
//!
//! Reading order: [`cbor`] and [`json`] (bytes), [`id`] and [`hash`] (names), [`envelope`] (what
//! goes in and out), [`token`], [`scope`] and [`budget`] (authority), [`manifest`], [`tool`],
//! [`resolve`] and [`policy`] (what is asked), [`obligation`] and [`facts`] (with what), [`label`]
//! (whose word), [`record`] (what is written down), [`kernel`] (what happens), [`store`] (what
//! lasts).
#![no_std]
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

extern crate alloc;

mod args;
pub mod budget;
mod call;
pub mod cbor;
pub mod control;
mod decide;
pub mod envelope;
pub mod facts;
pub mod field;
pub mod halt;
pub mod hash;
pub mod id;
pub mod json;
pub mod kernel;
pub mod label;
pub mod limits;
mod listed;
pub mod manifest;
pub mod object;
pub mod obligation;
pub mod policy;
pub mod ports;
pub mod provenance;
pub mod reason;
pub mod record;
pub mod registry;
pub mod resolve;
pub mod scope;
pub mod sign;
pub mod snapshot;
mod state;
pub mod store;
pub mod time;
pub mod token;
mod told;
pub mod tool;
mod vault;
