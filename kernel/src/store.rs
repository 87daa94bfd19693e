//! The store's side: what is made durable together, and the proof that it was.

use alloc::{boxed::Box, vec::Vec};

use crate::halt::Halt;
use syscap_format::{Head, HomeId, Leaf, Object, ObjectId, Record, Seq, VaultWrite, leaf};

/// A record's bytes and leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its position.
    pub seq: Seq,
    /// Its leaf.
    pub leaf: Leaf,
    /// Its canonical bytes.
    pub bytes: Vec<u8>,
}

/// Records, objects and vault entries that are made durable in one transaction.
///
/// Only [`Batch::commit`] turns it into a [`Stored`], by way of a store: that is the one claim
/// about durability which the kernel trusts.
#[derive(Debug)]
#[must_use = "a batch must be committed, or the kernel halted"]
pub struct Batch {
    pub(crate) home: HomeId,
    pub(crate) after: Option<Head>,
    pub(crate) links: Vec<Link>,
    pub(crate) objects: Vec<Object>,
    pub(crate) vault: Vec<VaultWrite>,
    pub(crate) erased: Vec<Seq>,
}

impl Batch {
    /// The head that the log must have for this batch to follow; `None` for an empty log.
    pub const fn after(&self) -> Option<Head> {
        self.after
    }

    /// The records, in order, at least one.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The control documents that the records name and the store may not have yet.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// The rows for the vault, at most one a record.
    pub fn vault(&self) -> &[VaultWrite] {
        &self.vault
    }

    /// The earlier records whose rows the vault loses with this batch. It may have none of them.
    pub fn erased(&self) -> &[Seq] {
        &self.erased
    }

    /// Makes the batch durable.
    ///
    /// # Errors
    /// [`Halt::Store`]: nothing of the batch may be taken as durable, and the kernel must be
    /// told to halt.
    pub fn commit(self, store: &mut dyn Store) -> Result<Stored, Halt> {
        match self.attempt(store)? {
            Attempt::Stored(stored) => Ok(stored),
            Attempt::Busy(_) => Err(Halt::Store(StoreError::Busy)),
        }
    }

    /// Makes the batch durable, or gives it back where the store is [busy](StoreError::Busy):
    /// nothing of it was written, and it may be tried again.
    ///
    /// # Errors
    /// As [`Batch::commit`].
    pub fn attempt(self, store: &mut dyn Store) -> Result<Attempt, Halt> {
        let Some(last) = self.links.last() else {
            return Err(Halt::ForeignStored);
        };
        let head = Head { seq: last.seq, leaf: last.leaf };
        match store.commit(&self) {
            Ok(()) => {}
            Err(StoreError::Busy) => return Ok(Attempt::Busy(self)),
            Err(error) => return Err(error.into()),
        }
        let Self { home, mut links, mut vault, .. } = self;
        links.clear();
        vault.clear();
        Ok(Attempt::Stored(Stored { home, head, spare: Spare { links, vault } }))
    }
}

/// The result of one try to make a batch durable.
#[derive(Debug)]
#[must_use = "the kernel must be told, or the batch tried again"]
pub enum Attempt {
    /// It is durable.
    Stored(Stored),
    /// The store was busy: the batch, of which nothing was written.
    Busy(Batch),
}

/// Proof that all records up to one are durable.
#[derive(Debug)]
#[must_use = "the kernel must be told"]
pub struct Stored {
    pub(crate) home: HomeId,
    pub(crate) head: Head,
    pub(crate) spare: Spare,
}

/// The room of a batch that is durable, for one to come.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    pub(crate) links: Vec<Link>,
    pub(crate) vault: Vec<VaultWrite>,
}

/// Proof that a record is durable in a home's log: what an older head that a signed event names is
/// held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ancestor {
    pub(crate) home: HomeId,
    pub(crate) head: Head,
}

impl Ancestor {
    /// Looks in a store; `None` where the record there is another, or there is none.
    pub fn find(store: &mut dyn Store, head: Head) -> Result<Option<Self>, StoreError> {
        let home = leaf_at(store, Seq::GENESIS)?.map(|leaf| HomeId::from_bytes(*leaf.as_bytes()));
        let found = leaf_at(store, head.seq)?.filter(|leaf| *leaf == head.leaf);
        Ok(home.zip(found).map(|(home, _)| Self { home, head }))
    }
}

/// Proof that records are durable in a home's log, and of kinds that may have rows in the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithRows {
    pub(crate) home: HomeId,
    pub(crate) records: Vec<Seq>,
}

impl WithRows {
    /// Looks in a store; else the first record that is no such, or is not there.
    pub fn find(store: &mut dyn Store, records: &[Seq]) -> Result<Result<Self, Seq>, StoreError> {
        let home = leaf_at(store, Seq::GENESIS)?.ok_or(StoreError::Missing)?;
        for seq in records {
            let kind = record_at(store, *seq)?
                .and_then(|bytes| Record::decode(&bytes).ok())
                .map(|record| record.body.may_have_row());
            if kind != Some(true) {
                return Ok(Err(*seq));
            }
        }
        let home = HomeId::from_bytes(*home.as_bytes());
        Ok(Ok(Self { home, records: records.to_vec() }))
    }
}

/// The leaf of the record at a position.
pub(crate) fn leaf_at(store: &mut dyn Store, seq: Seq) -> Result<Option<Leaf>, StoreError> {
    Ok(record_at(store, seq)?.map(|bytes| leaf(&bytes)))
}

/// The bytes of the record at a position; `None` where the log ends before it.
pub fn record_at(store: &mut dyn Store, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
    let mut found = None;
    store.records(seq, &mut |at, bytes| {
        found = (at == seq).then(|| Vec::from(bytes));
        Next::Enough
    })?;
    Ok(found)
}

/// The room on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// For new calls.
    Enough,
    /// Only for what is kept back: outcomes, recoveries, revocations, the shutdown.
    Reserve,
}

/// Why a store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The log's head is another than the batch follows: somebody else appended.
    #[error("the log's head has moved")]
    HeadMoved,
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// Another process holds the home.
    #[error("another process holds the home")]
    Locked,
    /// Another program holds a lock of the database, as one that copies or browses it may. Nothing
    /// was written, and the same may be tried again.
    #[error("another program holds a lock of the home's database")]
    Busy,
    /// A file of the database was taken away while it was open, or another put in its place: who
    /// opens the home next finds another log than this one.
    #[error("a file of the home's database was replaced or taken away while it was in use")]
    Replaced,
    /// There is no home here.
    #[error("there is no home here")]
    Missing,
    /// There is something here already.
    #[error("there is a home here already")]
    Exists,
    /// The file is no home of ours, or damaged.
    #[error("the database is damaged or not a syscap home")]
    Damaged,
    /// A newer version wrote it.
    #[error("the home was written by a newer version (format {0})")]
    Newer(u32),
    /// It was written before the formats were settled.
    #[error("the home was made before the formats were settled (format {0}): make it anew")]
    TooOld(u32),
    /// The storage library has a known fault.
    #[error("the storage library is too old")]
    Library,
    /// The operating system reported an error.
    #[error("input or output failed (code {0})")]
    Io(i32),
    /// An error before left the store unusable.
    #[error("an earlier error left the store unusable")]
    Poisoned,
}

/// The store of the log, the objects and the vault.
///
/// The kernel takes a store's word for what is durable. This is what the word must be good for;
/// the store kit of `syscap-audit` (`kit`) checks it of any implementation.
///
/// * **One holder.** While a place is open it can't be opened again, by this process or another:
///   whoever tries gets [`StoreError::Locked`]. The end of the holder frees it, however it ends.
/// * **On the head only.** A batch is taken where the log ends as the batch says, by number and by
///   leaf ([`Batch::after`], `None` for an empty log); else [`StoreError::HeadMoved`].
/// * **Whole or not at all.** Records, objects and vault rows of a batch are there together or not
///   at all: after an error, and after a crash at any moment.
/// * **Durable on return.** What [`Store::commit`] has returned `Ok` for survives the process, and
///   at full durability the machine. A failed commit may be there all the same, whole.
/// * **Busy, nothing written.** [`StoreError::Busy`] says that nothing of the batch was written, nor
///   will be by itself: it may be committed again, and is then taken once. No store must say it.
/// * **No way on after an error.** Once a commit has failed otherwise, every other one is
///   [`StoreError::Poisoned`]: what the place holds then is found out by whoever opens it next.
///   Reads may be refused too.
/// * **Reads give what was committed**, as soon as it was, byte for byte: records in order and
///   without a gap, objects by their id, vault rows by their record. Damaged or unreadable data is
///   an error, never other bytes.
/// * **What is erased is gone.** The rows that a batch erases ([`Batch::erased`]) go with it: all of
///   them or none. One that is not there is no error.
/// * **An object's id names its bytes.** One that comes again is no error and changes nothing.
/// * **Sizes**: records of up to [`RECORD_BYTES_MAX`](syscap_format::RECORD_BYTES_MAX),
///   objects of up to [`OBJECT_BYTES_MAX`](syscap_format::OBJECT_BYTES_MAX), vault rows of
///   results of up to [`RESULT_BYTES_MAX`](syscap_format::RESULT_BYTES_MAX) and of next to
///   nothing.
///
/// Opening returns [`StoreError::Missing`], [`StoreError::Exists`], [`StoreError::Damaged`] or
/// [`StoreError::Newer`] where that is so, and changes nothing then.
pub trait Store: Send {
    /// Makes a batch durable, all or nothing.
    ///
    /// # Errors
    /// [`StoreError`], and from then on [`StoreError::Poisoned`].
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError>;

    /// Looks whether a commit could begin, without writing anything. Asked before an operator's
    /// act, which must not wait for another program.
    ///
    /// # Errors
    /// [`StoreError::Busy`].
    fn ready(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Gives `each` every record's bytes from `from` on, in order, until it says no.
    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError>;

    /// A control document.
    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError>;

    /// The vault's row beside a record; `None` where there is none, or it was erased.
    fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError>;

    /// How long that row is, in bytes. A store that can tell without reading the row should: what a
    /// call makes the host read is bounded by this before it is read.
    fn vault_len(&mut self, seq: Seq) -> Result<Option<usize>, StoreError> {
        Ok(self.vault(seq)?.map(|row| row.len()))
    }

    /// Another handle on the same place that only reads, and for which no commit waits: it sees
    /// what was committed, as soon as it was. Without one, which is the default, reads and commits
    /// wait for each other.
    fn reader(&self) -> Result<Option<Box<dyn Store>>, StoreError> {
        Ok(None)
    }

    /// The room on the disk.
    fn room(&mut self) -> Result<Room, StoreError>;

    /// Moves what is committed out of any journal beside it, so that a copy without the journal
    /// lacks nothing. It is asked for once, after the boot is durable.
    fn settle(&mut self) -> Result<Settled, StoreError> {
        Ok(Settled::Whole)
    }

    /// Leaves no byte of a row that was erased in any journal or free room of the store's files.
    /// [`Settled::NotYet`] where a reader is in the way: the next [idle](Store::idle) time or
    /// opening goes on. So says a store that has nothing of its own here, too: nobody is told that
    /// all is gone who can't know it.
    fn purge(&mut self) -> Result<Settled, StoreError> {
        Ok(Settled::NotYet)
    }

    /// Housekeeping while nobody waits.
    fn idle(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Decides if committed data stands outside of any journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// All of it.
    Whole,
    /// Not all: a reader was in the way for too long.
    NotYet,
}

/// Decides if reading continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Read on.
    More,
    /// That is enough.
    Enough,
}
