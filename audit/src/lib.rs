//! Where syscap's log is kept.
//!
//! Stores implement [`syscap_kernel::store::Store`]: [`sqlite::SqliteStore`] keeps a home in one
//! SQLite file, [`memory::MemoryStore`] in memory, [`fault::FaultStore`] fails where a test
//! wants it to; [`kit`] proves any other. [`lock`] says who holds a home, whatever its store is.
//! [`export`] writes a log out as plain files, which `syscap-verify` reads.
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

pub mod disk;
pub mod export;
pub mod fault;
pub mod kit;
pub mod lock;
pub mod memory;
pub mod sqlite;
