//! The rules, and what was found where one is broken.

use std::{fmt, io};

use syscap_format::{ObjectId, Seq};
use syscap_kernel::{Halt, StoreError};

/// A rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store breaks the rule `{rule}`: {found}")]
pub struct KitError {
    /// Which.
    pub rule: Rule,
    /// By what.
    pub found: Found,
}

/// A property of a store, in the order in which it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// A new store has nothing, also when it is opened again.
    Empty,
    /// Batches that follow the head are taken: the first on an empty log, each next one.
    Follow,
    /// Records are read in order, without a gap, byte for byte, from any position.
    Order,
    /// Reading ends when the reader has enough.
    Enough,
    /// Control documents are found by their id, of whatever size, and may come again.
    Objects,
    /// Vault rows are found by their record, of whatever size.
    Vault,
    /// Committed data is there when the store is opened again, and the log continues.
    Reopen,
    /// Rows that a batch erases are gone with it, and no others.
    Erased,
    /// Housekeeping changes nothing.
    Idle,
    /// A missing place is [`StoreError::Missing`]; creating an existing one is
    /// [`StoreError::Exists`], and leaves it unchanged.
    Place,
    /// Opening an open store gives [`StoreError::Locked`].
    Exclusive,
    /// A batch that follows an earlier or a later record than the last is
    /// [`StoreError::HeadMoved`].
    HeadSeq,
    /// So is one that follows another record of the same number.
    HeadLeaf,
    /// A refused batch leaves nothing.
    Refused,
    /// After an error no commit goes through: [`StoreError::Poisoned`].
    Poisoned,
    /// A record may have 65,535 bytes.
    Long,
    /// A log may have many records, and a batch too.
    Many,
    /// A batch whose commit fails on the way is there whole or not at all, and the log goes on
    /// when the store is opened again. Checked with [`Kit::failing`](super::Kit::failing).
    Whole,
    /// Acknowledged batches survive the process; others are there whole or not at all. Checked with
    /// [`Kit::killed_in`](super::Kit::killed_in).
    Durable,
}

impl Rule {
    /// All rules.
    pub const ALL: &[Self] = &[
        Self::Empty,
        Self::Follow,
        Self::Order,
        Self::Enough,
        Self::Objects,
        Self::Vault,
        Self::Reopen,
        Self::Erased,
        Self::Idle,
        Self::Place,
        Self::Exclusive,
        Self::HeadSeq,
        Self::HeadLeaf,
        Self::Refused,
        Self::Poisoned,
        Self::Long,
        Self::Many,
        Self::Whole,
        Self::Durable,
    ];

    /// The rule's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Follow => "follow",
            Self::Order => "order",
            Self::Enough => "enough",
            Self::Objects => "objects",
            Self::Vault => "vault",
            Self::Erased => "erased",
            Self::Reopen => "reopen",
            Self::Idle => "idle",
            Self::Place => "place",
            Self::Exclusive => "exclusive",
            Self::HeadSeq => "head_seq",
            Self::HeadLeaf => "head_leaf",
            Self::Refused => "refused",
            Self::Poisoned => "poisoned",
            Self::Long => "long",
            Self::Many => "many",
            Self::Whole => "whole",
            Self::Durable => "durable",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The fault found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Found {
    /// It failed where it must not, or by another error than it owes.
    #[error("it failed: {0}")]
    Failed(StoreError),
    /// It did what it must refuse.
    #[error("it did what it must refuse")]
    Done,
    /// A record is missing, is another than was committed, or should not be there.
    #[error("record {0} is missing, another, or one too many")]
    Record(Seq),
    /// The same of a control document.
    #[error("the object {0} is missing, another, or one too many")]
    Object(ObjectId),
    /// The same of the vault's row of a record.
    #[error("the vault's row of record {0} is missing, another, or one too many")]
    Vault(Seq),
    /// It read on when the reader had enough.
    #[error("it reads on when the reader has enough")]
    ReadsOn,
    /// The hook that was to make it fail did not.
    #[error("what was to make it fail did not")]
    NoFault,
    /// The process that was to be killed ended by itself, or is of another program.
    #[error("the process that was to be killed ended by itself")]
    Ended,
    /// The kit can't have what it needs of the operating system.
    #[error("the kit can't go on: {0}")]
    Host(io::ErrorKind),
    /// The kernel stopped: it could not go on with what the store gave it.
    #[error("the kernel stopped: {0}")]
    Halted(Halt),
    /// The kernel refused the kit's own script: a fault of the kit.
    #[error("the kit's script is refused, which is no fault of the store's")]
    Script,
}

impl From<StoreError> for Found {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl From<Halt> for Found {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Store(error) => Self::Failed(error),
            halt => Self::Halted(halt),
        }
    }
}

impl From<io::Error> for Found {
    fn from(error: io::Error) -> Self {
        Self::Host(error.kind())
    }
}
