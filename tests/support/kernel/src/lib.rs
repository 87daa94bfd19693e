//! For tests of the kernel and of what stands beside it.

pub mod absent;
pub mod asking;
pub mod driver;
pub mod fault;
mod forward;
mod from_store;
pub mod history;
pub mod mounts;
pub mod sim;

pub use from_store::FromStore;

/// The names that [`forward!`] writes.
pub mod store {
    pub use syscap_format::{Object, ObjectId, Seq};
    pub use syscap_kernel::{Batch, Next, Room, Store, StoreError};
}
