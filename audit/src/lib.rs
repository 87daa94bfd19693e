//! Stores of syscap's log.
//!
//! Stores implement [`syscap_kernel::Store`]: `SqliteStore` keeps a home in one SQLite file (the
//! feature `sqlite`, on by default), [`MemoryStore`] in memory; [`kit`] proves any other.
//! [`HomeLock`] says who holds a home, whatever its store is. [`LogReader`] reads a log at rest;
//! [`export`] writes it out as plain files, which `syscap-verify` reads.
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

pub mod disk;
pub mod export;
pub mod kit;
mod lock;
mod memory;
mod reader;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use lock::{HomeLock, LOCK_FILE, LockState};
pub use memory::MemoryStore;
pub use reader::LogReader;
#[cfg(feature = "sqlite")]
pub use sqlite::{DATABASE_FILE, SqliteReader, SqliteStore, rows_read};
