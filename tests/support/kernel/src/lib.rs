//! For tests of the kernel and of what stands beside it.

pub mod absent;
pub mod asking;
pub mod driver;
pub mod fault;
mod from_store;
pub mod mounts;
pub mod sim;

pub use from_store::FromStore;
