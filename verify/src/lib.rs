//! Verification: a log derived anew, by code of its own.
//!
//! It reads each record once and keeps only tokens, idempotency keys, the agents' heads, open
//! sessions and open intents. It never trusts a verdict or an amount that it can work out from the
//! records before: signatures, grants, times, budgets, fees, flags, facts, what a policy asked of a
//! run. What it can't check is what the log doesn't hold: whether arguments and results are those
//! that salted commitments stand for, and what a policy *should* have said.
//!
//! It rests on `syscap-format` alone: no line of the kernel judges the kernel here.
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

mod chain;
mod export;
mod ledger;
mod report;
mod source;

pub use export::ExportReader;
pub use report::{Anchor, AnchorNeed, End, FINDINGS_MAX, Fault, Finding, Report, Verdict};
pub use source::{Chunk, Source};
pub use syscap_format::control::Trust;

use std::{
    io,
    path::{Path, PathBuf},
};

use syscap_format::{cbor::DecodeError, record::Head};

/// Where the trust comes from.
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
    /// Where the trust comes from.
    pub trust: TrustSource,
    /// Whether there must be some.
    pub anchor_need: AnchorNeed,
}

/// What a source says about the log's end.
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

/// Verifies an export. An export of a home that was held ends without a shutdown, and is
/// incomplete.
///
/// # Errors
/// [`VerifyError`].
pub fn verify_export(folder: &Path, options: &Options) -> Result<Report, VerifyError<io::Error>> {
    let mut reader = ExportReader::open(folder)?;
    verify(&mut reader, Extent::AtRest, options)
}

/// Verifies whatever can be read.
///
/// # Errors
/// [`VerifyError`].
pub fn verify<E>(
    source: &mut dyn Source<Error = E>,
    extent: Extent,
    options: &Options,
) -> Result<Report, VerifyError<E>> {
    let trust = match &options.trust {
        TrustSource::SelfAnchored => None,
        TrustSource::Given(trust) => Some(Trust::clone(trust)),
        TrustSource::File(path) => {
            let bytes = std::fs::read(path)
                .map_err(|error| VerifyError::TrustFile(error.raw_os_error().unwrap_or(0)))?;
            Some(Trust::from_bytes(&bytes).map_err(VerifyError::Trust)?)
        }
    };
    let report = chain::walk(source, extent, trust.as_ref()).map_err(VerifyError::Source)?;
    Ok(Report { anchor_need: options.anchor_need, ..report })
}
