//! Why the kernel stopped. It fails closed: once halted it answers nothing more.

use crate::store::StoreError;
use syscap_format::{DecodeError, PublicKey, RecordKind, Role, Seq, SignatureError};

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
        /// The fault of its bytes.
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
    /// A record is of a kind that this version does not know: newer software wrote it.
    #[error("record {seq} is of kind {kind}, which only newer software knows")]
    UnknownKind {
        /// Its position.
        seq: Seq,
        /// The kind's number.
        kind: u64,
    },
    /// A record's form has a version that is not known: newer software wrote it.
    #[error("record {seq} is of version {version} of kind {kind}, which only newer software knows")]
    UnknownVersion {
        /// Its position.
        seq: Seq,
        /// Its kind.
        kind: RecordKind,
        /// The version.
        version: u64,
    },
    /// A record uses what is settled and not built yet: newer software wrote it.
    #[error("record {seq} uses {name}, which only newer software knows")]
    Reserved {
        /// Its position.
        seq: Seq,
        /// The kind, or the field.
        name: &'static str,
    },
    /// The home was made before the formats were settled.
    #[error("the home was made before the formats were settled (form {form}): make it anew")]
    TooOld {
        /// The version of its records.
        form: u64,
    },
    /// A record claims what nobody with that right has signed. The home is not opened.
    #[error("record {seq} is forged: {why}")]
    Forged {
        /// Its position.
        seq: Seq,
        /// The fault.
        why: Forgery,
    },
    /// The home is another than the one that was expected.
    #[error("this is another home: {0}")]
    Foreign(Foreign),
    /// The log has no genesis record.
    #[error("the log is empty")]
    Empty,
    /// A record would exceed [`syscap_format::RECORD_BYTES_MAX`].
    #[error("a record would be too large")]
    RecordTooLarge,
    /// The host claimed durability for a record that the kernel did not write last.
    #[error("the store acknowledged another record than the kernel's")]
    ForeignStored,
    /// The host brought an event before it booted the kernel. None of it is recorded.
    #[error("the host brought an event before it booted the kernel: boot first")]
    NotBooted,
    /// The signature library failed its known-answer test.
    #[error(transparent)]
    SelfTest(#[from] SignatureError),
    /// The kernel was halted before.
    #[error("the kernel is halted")]
    Halted,
}

/// The fault of data that claims to be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Forgery {
    /// It is not of its form.
    #[error("it is not of its form")]
    Form,
    /// A key that signed does not have the role.
    #[error("a key that signed it does not have the role")]
    Role,
    /// Fewer keys signed than the role asks for.
    #[error("fewer keys signed it than the role asks for")]
    Threshold,
    /// A key's counter has not grown.
    #[error("the counter of a key has not grown")]
    Counter,
    /// The head that it names is no record of this log.
    #[error("the head that it names is no record of this log")]
    Head,
    /// The head that it names lies before the last record that its key signed, or that replaced
    /// the same.
    #[error(
        "the head that it names lies before the last record of its key, or of what it replaces"
    )]
    StaleHead,
    /// A signature does not verify.
    #[error("a signature does not verify")]
    Signature,
    /// It is for another home.
    #[error("it is for another home")]
    Audience,
    /// It gives more than what it was derived from.
    #[error("it gives more than what it was derived from")]
    Attenuation,
    /// It renews what it may not.
    #[error("it renews another agent's token, one that was revoked, or one that is no root")]
    Renewal,
    /// Its epoch, its issuer's key or its holder's was revoked before.
    #[error("its epoch, its issuer's key or its holder's was revoked before")]
    Ended,
    /// A key that is new to a role does not prove to be held.
    #[error("a key that is new to a role does not prove to be held")]
    Possession,
}

/// The evidence that a home is another than the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Foreign {
    /// Its id.
    #[error("its id is not that of the trust file")]
    Home,
    /// The keys that it began with.
    #[error("its first keys are not those of the trust file")]
    Keys,
    /// It never had the key by which somebody would sign for it.
    #[error("the {role} never had the key {key}")]
    Signer {
        /// The role.
        role: Role,
        /// The key.
        key: PublicKey,
    },
}
