//! What is asked of the store.

use std::sync::PoisonError;

use syscap_format::record::Head;
use syscap_kernel::{
    halt::Halt,
    store::{Ancestor, Store, StoreError},
};

use super::Core;
use crate::guard::caught;

impl Core {
    /// Looks whether a head is durable.
    pub(crate) fn ancestor(&self, head: Head) -> Result<Option<Ancestor>, Halt> {
        self.read(|store| Ok(Ancestor::find(store, head)?))
    }

    /// Reads from the store, by its handle for readers where it has one: then no commit waits.
    ///
    /// An error halts the kernel, as one of a commit does.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&mut dyn Store) -> Result<T, Halt>,
    ) -> Result<T, Halt> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        match reader.as_mut() {
            Some(reader) => caught(|| read(&mut **reader)).unwrap_or(Err(Halt::Halted)),
            None => {
                drop(reader);
                self.ask(read)
            }
        }
    }

    /// Asks the store that commits. One that panics may be between two states: the kernel must be halted, as
    /// after any error, and then nothing more is written.
    pub(crate) fn ask<T>(
        &self,
        ask: impl FnOnce(&mut dyn Store) -> Result<T, Halt>,
    ) -> Result<T, Halt> {
        let mut held = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.as_mut().ok_or(Halt::Store(StoreError::Poisoned))?;
        caught(|| ask(&mut *held.store)).unwrap_or(Err(Halt::Halted))
    }
}
