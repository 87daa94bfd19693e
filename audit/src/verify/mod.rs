//! Verification: a log derived anew, by code of its own.
//!
//! It reads each record once and keeps only tokens, idempotency keys, the agents' heads, open
//! sessions and open intents. It never trusts a verdict or an amount that it can work out from the
//! records before: signatures, grants, times, budgets, fees, flags, facts, what a policy asked of a
//! run. What it can't check is what the log doesn't hold: whether arguments and results are those
//! that salted commitments stand for, and what a policy *should* have said.

mod chain;
mod ledger;
mod report;
mod source;
mod trust;

pub use report::{Anchor, AnchorNeed, End, FINDINGS_MAX, Fault, Finding, Report, Verdict};
pub use source::{Chunk, FromStore, Source};
pub use trust::{TRUST_FILE, Trust};

use std::path::{Path, PathBuf};

use syscap_kernel::{
    cbor::DecodeError,
    id::Seq,
    store::{Head, Next, StoreError},
};

use crate::{export::ExportReader, lock::LockState, sqlite::SqliteReader};

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
pub enum VerifyError {
    /// It can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The trust file can't be read.
    #[error("the trust file can't be read (code {0})")]
    TrustFile(i32),
    /// The trust file is damaged.
    #[error("the trust file is damaged: {0}")]
    Trust(#[from] DecodeError),
}

/// Verifies a home, also while a process holds it.
///
/// # Errors
/// [`VerifyError`], also where the database itself is damaged.
pub fn verify_home(home: &Path, options: &Options) -> Result<Report, VerifyError> {
    let mut reader = SqliteReader::open(home)?;
    let mut tries = 0_u32;
    loop {
        let (extent, head) = extent_of(&mut reader)?;
        let report = verify(&mut reader, extent, options)?;
        tries = tries.saturating_add(1);
        // Somebody took the home meanwhile: what looked like the end of a home at rest was none.
        let moved = matches!(extent, Extent::Head(_)) && reader.head()? != Some(head);
        if !moved || tries >= TRIES_MAX {
            return Ok(report);
        }
    }
}

/// How often a home is verified anew that somebody takes meanwhile.
const TRIES_MAX: u32 = 8;

/// How far a home's log goes at this moment, and its head.
fn extent_of(reader: &mut SqliteReader) -> Result<(Extent, Head), VerifyError> {
    let before = reader.lock_state()?;
    let head = reader.head()?;
    // Held at either moment: the head may lie in between.
    let held = before == LockState::Held || reader.lock_state()? == LockState::Held;
    match head {
        Some(head) if held => Ok((Extent::Live(head), head)),
        Some(head) => Ok((Extent::Head(head), head)),
        // Records without a head: somebody took it away. No records either: nothing was begun.
        None if has_records(reader)? => Err(StoreError::Damaged.into()),
        None => Err(StoreError::Missing.into()),
    }
}

fn has_records(reader: &mut SqliteReader) -> Result<bool, StoreError> {
    let mut any = false;
    reader.records(Seq::GENESIS, &mut |_, _| {
        any = true;
        Next::Enough
    })?;
    Ok(any)
}

/// Verifies an export. An export of a home that was held ends without a shutdown, and is
/// incomplete.
///
/// # Errors
/// [`VerifyError`].
pub fn verify_export(folder: &Path, options: &Options) -> Result<Report, VerifyError> {
    let mut reader = ExportReader::open(folder)?;
    verify(&mut reader, Extent::AtRest, options)
}

/// Verifies whatever can be read.
///
/// # Errors
/// [`VerifyError`].
pub fn verify(
    source: &mut dyn Source,
    extent: Extent,
    options: &Options,
) -> Result<Report, VerifyError> {
    let trust = match &options.trust {
        TrustSource::SelfAnchored => None,
        TrustSource::Given(trust) => Some(Trust::clone(trust)),
        TrustSource::File(path) => {
            let bytes = std::fs::read(path)
                .map_err(|error| VerifyError::TrustFile(error.raw_os_error().unwrap_or(0)))?;
            Some(Trust::from_bytes(&bytes)?)
        }
    };
    let mut report = chain::walk(source, extent, trust.as_ref())?;
    report.anchor_need = options.anchor_need;
    Ok(report)
}
