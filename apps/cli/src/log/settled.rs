//! The outcomes of interrupted calls.

use std::collections::{BTreeMap, BTreeSet};

use syscap::audit::SqliteReader;
use syscap::format::{Body, Record, Recovered, Seq};
use syscap::kernel::{Next, StoreError};

/// The outcome of an interrupted call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settled {
    /// The record that says so.
    pub(super) record: Seq,
    pub(super) verdict: Recovered,
    /// True if an operator resolved it; else a boot found it, with the tool's proof or without one.
    pub(super) by_operator: bool,
}

impl Settled {
    pub(super) fn words(self) -> String {
        let by = if self.by_operator { "an operator" } else { "the boot after a crash" };
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
        if let Ok(Record { body: Body::Recovery(said), .. }) = Record::decode(bytes)
            && intents.contains(&said.intent)
        {
            let by_operator = said.control.is_some();
            found.insert(said.intent, Settled { record, verdict: said.verdict, by_operator });
        }
        Next::More
    })?;
    Ok(found)
}
