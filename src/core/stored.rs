//! What is asked of the store.

use std::sync::PoisonError;

use syscap_format::{id::Seq, record::Head, vault::VaultEntry};
use syscap_kernel::{
    halt::Halt,
    store::{Ancestor, Store, StoreError, vault_entry},
};

use super::Core;
use crate::guard::caught;

impl Core {
    pub(super) fn fetch(&self, wanted: &[(Seq, Seq)]) -> Result<Vec<VaultEntry>, Halt> {
        self.ask(|store| {
            let read = |(first, outcome): &(Seq, Seq)| vault_entry(store, *first, *outcome);
            Ok(wanted.iter().map(read).collect::<Result<_, StoreError>>()?)
        })
    }

    /// Looks whether a head is durable.
    pub(crate) fn ancestor(&self, head: Head) -> Result<Option<Ancestor>, Halt> {
        self.ask(|store| Ok(Ancestor::find(store, head)?))
    }

    /// Asks the store. One that panics may be between two states: the kernel must be halted, as
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
