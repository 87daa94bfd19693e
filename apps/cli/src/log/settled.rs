//! The outcomes of interrupted calls.

use std::collections::{BTreeMap, BTreeSet};

use syscap::audit::SqliteReader;
use syscap::format::{Body, Record, Recovered, Seq};
use syscap::kernel::{Next, StoreError};

/// Who says what became of an interrupted call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The boot after it, with the tool's proof or without one.
    Boot,
    Operator,
    /// Whoever ran it.
    Report,
}

/// The outcome of an interrupted call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settled {
    /// The record that says so.
    pub(super) record: Seq,
    pub(super) verdict: Recovered,
    pub(super) by: By,
}

impl Settled {
    pub(super) fn words(self) -> String {
        let by = match self.by {
            By::Boot => "the boot after a crash",
            By::Operator => "an operator",
            By::Report => "a late report",
        };
        format!("{}, says {by} (record {})", self.verdict, self.record)
    }
}

/// The last that was said of each of these calls, in one pass over what stands behind the first.
pub(super) fn settled(
    reader: &mut SqliteReader,
    intents: &BTreeSet<Seq>,
) -> Result<BTreeMap<Seq, Settled>, StoreError> {
    let mut found = BTreeMap::new();
    let Some(first) = intents.first() else { return Ok(found) };
    reader.records(first.next(), &mut |record, bytes| {
        let said = match Record::decode(bytes).map(|record| record.body) {
            Ok(Body::Recovery(said)) => {
                let by = if said.control.is_some() { By::Operator } else { By::Boot };
                (said.intent, said.verdict, by)
            }
            Ok(Body::LateReport(report)) => (report.intent, report.verdict(), By::Report),
            _ => return Next::More,
        };
        let (intent, verdict, by) = said;
        if intents.contains(&intent) {
            found.insert(intent, Settled { record, verdict, by });
        }
        Next::More
    })?;
    Ok(found)
}
