//! Where syscap's log is kept.
//!
//! Stores implement [`syscap_kernel::Store`]: `sqlite::SqliteStore` keeps a home in one
//! SQLite file (the feature `sqlite`, on by default), [`memory::MemoryStore`] in memory; [`kit`]
//! proves any other. [`lock`] says who holds a home, whatever its store is. What is at rest is read
//! by [`reader::LogReader`]; [`export`] writes it out as plain files, which `syscap-verify` reads.
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

pub mod disk;
pub mod export;
pub mod kit;
pub mod lock;
pub mod memory;
pub mod reader;
#[cfg(feature = "sqlite")]
pub mod sqlite;
