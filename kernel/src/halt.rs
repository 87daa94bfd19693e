//! Why the kernel stopped. It fails closed: once halted it answers nothing more.

use crate::{cbor::DecodeError, id::Seq, sign::SignatureError, store::StoreError};

/// Why the kernel stopped, or did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Halt {
    /// The store failed. An error of its write is final: reopen, which replays the log.
    #[error("the store failed: {0}")]
    Store(#[from] StoreError),
    /// A record can't be decoded.
    #[error("record {seq} is damaged: {fault}")]
    Damaged {
        /// Its position.
        seq: Seq,
        /// What is wrong with its bytes.
        fault: DecodeError,
    },
    /// A record does not follow from the one before it.
    #[error("record {seq} does not follow the record before it")]
    Unchained {
        /// Its position.
        seq: Seq,
    },
    /// A record contradicts the state that the records before it make.
    #[error("record {seq} contradicts the records before it")]
    Contradiction {
        /// Its position.
        seq: Seq,
    },
    /// A record names an object that is missing or has another hash.
    #[error("record {seq} names an object that is missing or damaged")]
    Object {
        /// Its position.
        seq: Seq,
    },
    /// A record is of a kind that this version does not know: a newer version wrote it.
    #[error("record {seq} is of kind {kind}, which this version does not know")]
    UnknownKind {
        /// Its position.
        seq: Seq,
        /// The kind's number.
        kind: u64,
    },
    /// The log has no genesis record.
    #[error("the log is empty")]
    Empty,
    /// A record would exceed [`crate::limits::RECORD_BYTES_MAX`].
    #[error("a record would be too large")]
    RecordTooLarge,
    /// The host claimed durability for a record that the kernel did not write last.
    #[error("the store acknowledged another record than the kernel's")]
    ForeignStored,
    /// The signature library failed its known-answer test.
    #[error(transparent)]
    SelfTest(#[from] SignatureError),
    /// The kernel was halted before.
    #[error("the kernel is halted")]
    Halted,
}
