//! Reading a log at rest, or beside the process that holds the home.

use syscap_format::{Head, Object, ObjectId, Seq};
use syscap_kernel::{Next, StoreError};

use crate::lock::LockState;

/// A log that is read: by who verifies it, exports it, or shows it.
pub trait LogReader {
    /// The state of the lock: a process writes the log at the moment, or none does.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn lock_state(&self) -> Result<LockState, StoreError>;

    /// The head of the log; `None` if it is empty.
    fn head(&mut self) -> Result<Option<Head>, StoreError>;

    /// Gives `each` every record's bytes from `from` on, in order, until it says no.
    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError>;

    /// A control document.
    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError>;

    /// The names of all control documents, in order.
    fn object_ids(&mut self) -> Result<Vec<ObjectId>, StoreError>;
}
