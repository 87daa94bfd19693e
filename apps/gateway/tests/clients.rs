//! Real clients in front of the gateway, and real servers behind it.
//!
//! `scripts/clients` installs them into a cache folder; without it each test says `skipped: ...`
//! and passes. A test makes a home, lets a client work through `syscap mcp`, and then judges by
//! what happened to the world and by what is on record.

mod agents;
mod beside;
mod conformance;
mod everything;
mod failures;
mod files;
mod governed;
mod home;
mod inspector;
mod odd;
mod offered;
mod parts;
