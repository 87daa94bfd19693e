//! Bytes and names: what syscap reads, writes, hashes and signs, and what each thing is called.
//!
//! Everything here is data. Nothing decides, spends or runs: that is `syscap-kernel`'s, and whoever
//! checks its work (`syscap-verify`) rests on this crate and not on the kernel's. No I/O, no clock,
//! no randomness, no `unsafe`; it builds without the standard library.
//!
//! Reading order: [`cbor`] and [`json`] (bytes), [`field`] (how documents are declared), [`id`] and
//! [`hash`] (names), [`sign`] (whose), [`envelope`] (what goes in and out), [`token`], [`scope`]
//! and [`budget`] (authority), [`manifest`] (tools), [`decision`] and [`obligation`] (what a policy
//! says), [`facts`], [`provenance`] and [`label`] (where from), [`record`], [`object`],
//! [`snapshot`] and [`vault`] (what is kept), [`image`] (the state of it all), [`reason`] (why
//! not).
#![no_std]
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

extern crate alloc;

pub mod budget;
pub mod cbor;
pub mod control;
pub mod decision;
pub mod envelope;
pub mod export;
pub mod facts;
pub mod field;
pub mod hash;
pub mod id;
pub mod image;
pub mod json;
pub mod label;
pub mod limits;
pub mod manifest;
pub mod object;
pub mod obligation;
pub mod provenance;
pub mod reason;
pub mod record;
pub mod scope;
mod shape;
pub mod sign;
pub mod snapshot;
pub mod summary;
pub mod time;
pub mod token;
pub mod vault;
