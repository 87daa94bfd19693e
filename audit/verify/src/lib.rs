//! Verification: a log derived anew, by code of its own.
//!
//! It reads each record once and keeps only tokens, idempotency keys, the agents' heads, open
//! sessions and open intents. It never trusts a verdict or an amount that it can work out from the
//! records before: signatures, grants, times, budgets, fees, flags, facts, what a policy asked of a
//! run. It can't check two things that the log doesn't hold: that arguments and results match their
//! salted commitments, and the verdict that a policy *should* have given.
//!
//! It rests on `syscap-format` alone: no line of the kernel judges the kernel here.
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

mod chain;
#[cfg(unix)]
mod export;
mod ledger;
mod options;
mod report;
mod source;

#[cfg(unix)]
pub use export::{ExportReader, verify_export};
pub use options::{Extent, Options, TrustSource, VerifyError};
pub use report::{Anchor, AnchorNeed, End, FINDINGS_MAX, Fault, Finding, Newer, Report, Soundness};
pub use source::{Chunk, Source};
pub use syscap_format::Trust;

/// Verifies whatever can be read.
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
    let report = chain::walk(source, extent, trust.as_ref(), options.noted);
    let report = report.map_err(VerifyError::Source)?;
    Ok(Report { anchor_need: options.anchor_need, ..report })
}
