//! How a log is verified, and why it can't be.

use std::path::PathBuf;

use syscap_format::{DecodeError, Head, Trust};

use crate::report::AnchorNeed;

/// The source of the trust.
#[derive(Clone, Debug, Default)]
pub enum TrustSource {
    /// Nowhere: the log's own first record.
    #[default]
    SelfAnchored,
    /// A file.
    File(PathBuf),
    /// The caller.
    Given(Box<Trust>),
}

/// How a log is verified.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The source of the trust.
    pub trust: TrustSource,
    /// Decides if an anchor is required.
    pub anchor_need: AnchorNeed,
    /// A head that was noted outside the log. A log that was cut off before it, or has another record
    /// there, has [`Fault::HeadMoved`](crate::Fault::HeadMoved).
    pub noted: Option<Head>,
}

/// A source's statement about the log's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The log ends where its records end, and nobody writes to it.
    AtRest,
    /// As [`Extent::AtRest`], and the store says that this is its head.
    Head(Head),
    /// A process writes to it; only records up to this head are verified.
    Live(Head),
}

/// Why a log could not be verified at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError<E> {
    /// It can't be read.
    #[error(transparent)]
    Source(#[from] E),
    /// The trust file can't be read.
    #[error("the trust file can't be read (code {0})")]
    TrustFile(i32),
    /// The trust file is damaged.
    #[error("the trust file is damaged: {0}")]
    Trust(DecodeError),
}
