//! The commands to the store.

use std::{sync::PoisonError, sync::atomic::Ordering};

use syscap_format::Head;
use syscap_kernel::{Ancestor, Batch, Event, Halt, Room, Store, StoreError, Stored};

use crate::driver::core::{Core, Held, Shared};
use crate::driver::guard::caught;

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

    /// Asks the store that commits. One that panics may be between two states: the kernel must be
    /// halted, as after any error, and then nothing more is written.
    pub(crate) fn ask<T>(
        &self,
        ask: impl FnOnce(&mut dyn Store) -> Result<T, Halt>,
    ) -> Result<T, Halt> {
        let mut held = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.as_mut().ok_or(Halt::Store(StoreError::Poisoned))?;
        caught(|| ask(&mut *held.store)).unwrap_or(Err(Halt::Halted))
    }

    /// Moves what is committed out of the store's journal: a copy without the journal then shows
    /// that the home was in use. If a reader prevents that, the store retries when idle.
    pub(crate) fn settle(&self) -> Result<(), StoreError> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let settle = |held: &mut Held| {
            caught(|| held.store.settle()).unwrap_or(Err(StoreError::Poisoned)).map(drop)
        };
        store.as_mut().map_or(Ok(()), settle)
    }

    /// Looks again where there was no room: refusals that are only counted commit nothing, and
    /// so would never find out.
    pub(crate) fn look_for_room(&self) {
        let room = self.ask(|store| Ok(store.room()?));
        self.take_room(&mut self.lock(), room);
    }

    pub(crate) fn take_room(&self, shared: &mut Shared, room: Result<Room, Halt>) {
        match room {
            Ok(room) if room != shared.room => {
                shared.room = room;
                self.short.store(room == Room::Reserve, Ordering::SeqCst);
                self.handle(shared, Event::Room(room));
            }
            Ok(_) => {}
            Err(halt) => shared.halt(halt),
        }
    }

    pub(crate) fn commit(&self, batch: Batch) -> (Result<Stored, Halt>, Result<Room, Halt>) {
        let stored = self.commit_in_time(batch);
        let room = match stored {
            Ok(_) => self.ask(|store| Ok(store.room()?)),
            Err(_) => Ok(Room::Reserve),
        };
        (stored, room)
    }
}
