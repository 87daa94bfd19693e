//! The store's side: what is made durable together, and the proof that it was.

use alloc::vec::Vec;

use crate::{
    halt::Halt,
    id::{HomeId, Leaf, ObjectId, Salt, Seq},
    object::Object,
};

/// Where a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The last record.
    pub seq: Seq,
    /// Its leaf.
    pub leaf: Leaf,
}

/// The three salts of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSalts {
    /// Of `call_hash`.
    pub call: Salt,
    /// Of `args_hash` and of the commitment to the arguments as sent.
    pub args: Salt,
    /// Of `result_hash`.
    pub result: Salt,
}

/// What the vault keeps of a call beside the log: erasable, one row a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaultWrite {
    /// The salts, under the call's first record: its intent or its refusal.
    Salts(Seq, CallSalts),
    /// The resolved arguments, under the intent or the policy's refusal; the changes of a
    /// state, under its record.
    Arguments(Seq, Vec<u8>),
    /// What was delivered, under the record that commits to it.
    Result(Seq, Vec<u8>),
}

/// What the vault has under a call's intent and outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VaultEntry {
    /// The salts, unless erased.
    pub salts: Option<CallSalts>,
    /// The resolved arguments, or the changes of a state, unless erased.
    pub args: Option<Vec<u8>>,
    /// The result, unless erased.
    pub result: Option<Vec<u8>>,
}

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
}

impl Batch {
    /// The head that the log must have for this batch to follow; `None` for an empty log.
    #[must_use]
    pub const fn after(&self) -> Option<Head> {
        self.after
    }

    /// The records, in order, at least one.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The control documents that the records name and the store may not have yet.
    #[must_use]
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// What goes into the vault.
    #[must_use]
    pub fn vault(&self) -> &[VaultWrite] {
        &self.vault
    }

    /// Makes the batch durable.
    ///
    /// # Errors
    /// [`Halt::Store`]: nothing of the batch may be taken as durable, and the kernel must be
    /// told to halt.
    pub fn commit(self, store: &mut dyn Store) -> Result<Stored, Halt> {
        let Some(last) = self.links.last() else {
            return Err(Halt::ForeignStored);
        };
        let head = Head { seq: last.seq, leaf: last.leaf };
        store.commit(&self)?;
        Ok(Stored { home: self.home, head })
    }
}

/// Proof that all records up to one are durable.
#[derive(Debug)]
#[must_use = "the kernel must be told"]
pub struct Stored {
    pub(crate) home: HomeId,
    pub(crate) head: Head,
}

/// Whether there is room on the disk.
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

/// Where the log, the objects and the vault live.
pub trait Store: Send {
    /// Makes a batch durable, all or nothing. The head that the batch follows must be the
    /// log's head, else [`StoreError::HeadMoved`]. After any error the store refuses to go on.
    ///
    /// # Errors
    /// [`StoreError`].
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError>;

    /// Gives `each` every record's bytes from `from` on, in order, until it says no.
    ///
    /// # Errors
    /// [`StoreError`].
    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError>;

    /// A control document.
    ///
    /// # Errors
    /// [`StoreError`].
    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError>;

    /// What the vault has of the call whose intent and outcome are these.
    ///
    /// # Errors
    /// [`StoreError`].
    fn vault(&mut self, intent: Seq, outcome: Seq) -> Result<VaultEntry, StoreError>;

    /// Whether there is room.
    ///
    /// # Errors
    /// [`StoreError`].
    fn room(&mut self) -> Result<Room, StoreError>;

    /// Housekeeping while nobody waits.
    ///
    /// # Errors
    /// [`StoreError`].
    fn idle(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Whether to read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Read on.
    More,
    /// That is enough.
    Enough,
}
