//! A store in memory: nothing outlives the process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use syscap_format::{Head, Object, ObjectId, Seq};
use syscap_kernel::{Batch, Next, Room, Settled, Store, StoreError};

/// A log in memory. Handles made by [`MemoryStore::share`] write to the same log.
#[derive(Debug, Default)]
pub struct MemoryStore {
    log: Arc<Mutex<Log>>,
    poisoned: bool,
    commits: u64,
    room: RoomSet,
}

/// A home's data.
#[derive(Clone, Debug, Default)]
struct Log {
    head: Option<Head>,
    records: Vec<Arc<[u8]>>,
    objects: BTreeMap<ObjectId, Object>,
    vault: BTreeMap<Seq, Vec<u8>>,
}

/// The answer of [`Store::room`].
#[derive(Clone, Copy, Debug)]
struct RoomSet(Room);

impl Default for RoomSet {
    fn default() -> Self {
        Self(Room::Enough)
    }
}

impl MemoryStore {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Another handle on the same log, as another process would have one.
    pub fn share(&self) -> Self {
        Self { log: Arc::clone(&self.log), ..Self::default() }
    }

    /// Another handle, if this is the only one: as a store on a disk is opened.
    ///
    /// # Errors
    /// [`StoreError::Locked`].
    pub fn open(&self) -> Result<Self, StoreError> {
        if Arc::strong_count(&self.log) > 1 { Err(StoreError::Locked) } else { Ok(self.share()) }
    }

    /// A log of its own with the same content: what a copy of the home's folder is.
    pub fn copy(&self) -> Self {
        let log = self.log().clone();
        Self { log: Arc::new(Mutex::new(log)), ..Self::default() }
    }

    /// How many batches this handle has committed.
    pub const fn commits(&self) -> u64 {
        self.commits
    }

    /// The head of the log; `None` if it is empty.
    pub fn head(&self) -> Option<Head> {
        self.log().head
    }

    /// All records' bytes.
    pub fn all_records(&self) -> Vec<Vec<u8>> {
        self.log().records.iter().map(|bytes| bytes.to_vec()).collect()
    }

    /// All control documents.
    pub fn all_objects(&self) -> Vec<Object> {
        self.log().objects.values().cloned().collect()
    }

    /// Sets what [`Store::room`] answers.
    pub const fn set_room(&mut self, room: Room) {
        self.room = RoomSet(room);
    }

    fn write(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut log = self.log();
        if log.head != batch.after() {
            return Err(StoreError::HeadMoved);
        }
        for link in batch.links() {
            log.records.push(Arc::from(link.bytes.as_slice()));
            log.head = Some(Head { seq: link.seq, leaf: link.leaf });
        }
        for object in batch.objects() {
            log.objects.entry(object.id).or_insert_with(|| object.clone());
        }
        let rows = batch.vault().iter().map(|write| (write.seq, write.row.clone()));
        log.vault.extend(rows);
        batch.erased().iter().for_each(|seq| drop(log.vault.remove(seq)));
        Ok(())
    }

    /// Every change is made whole under the lock, so one that panicked elsewhere left it sound.
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, place: usize) -> Option<Arc<[u8]>> {
        self.log().records.get(place).map(Arc::clone)
    }
}

impl Store for MemoryStore {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        if self.poisoned {
            return Err(StoreError::Poisoned);
        }
        let written = self.write(batch);
        match written {
            Ok(()) => self.commits = self.commits.saturating_add(1),
            Err(_) => self.poisoned = true,
        }
        written
    }

    fn purge(&mut self) -> Result<Settled, StoreError> {
        Ok(Settled::Whole)
    }

    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError> {
        let mut seq = from;
        // The lock is not held while `each` runs: it may use another handle.
        while let Some(bytes) = usize::try_from(seq.get()).ok().and_then(|n| self.record(n)) {
            if each(seq, &bytes) == Next::Enough {
                break;
            }
            seq = seq.next();
        }
        Ok(())
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        Ok(self.log().objects.get(id).cloned())
    }

    fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.log().vault.get(&seq).cloned())
    }

    fn vault_len(&mut self, seq: Seq) -> Result<Option<usize>, StoreError> {
        Ok(self.log().vault.get(&seq).map(Vec::len))
    }

    fn room(&mut self) -> Result<Room, StoreError> {
        Ok(self.room.0)
    }
}
