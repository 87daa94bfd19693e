//! The results found, and the lines about unreadable ones.

use std::path::Path;

use syscap::artifact::{Artifact, Kept, Latest, Which, latest};
use syscap::audit::SqliteReader;
use syscap::format::{Reason, TxOutcome};
use syscap::kernel::StoreError;

use crate::exit::{Ended, Exit, Failure};

/// The newest results of a home, the newest first.
pub(super) fn read(home: &Path, which: &Which) -> Result<Latest, Failure> {
    let failed = |error: StoreError| Failure::home(home)(syscap::Error::Home(error));
    let mut reader = SqliteReader::open(home).map_err(failed)?;
    match reader.head().map_err(failed)? {
        Some(head) => latest(&mut reader, head.seq, which).map_err(failed),
        None => Ok(Latest::default()),
    }
}

/// Every unreadable result is reported.
pub(super) fn concluded(home: &Path, found: &Latest) -> Ended {
    if found.unreadable > 0 {
        return Err(Failure::Unreadable(found.unreadable));
    }
    match found.artifacts.iter().find(|artifact| artifact.kept == Kept::Altered) {
        Some(artifact) => Err(altered(home, artifact)),
        None => Ok(Exit::Done),
    }
}

pub(super) fn altered(home: &Path, artifact: &Artifact) -> Failure {
    let problem = format!(
        "the vault has another result than record {} commits to, which is not shown",
        artifact.record
    );
    Failure::Audit { path: home.to_path_buf(), problem }
}

/// `ok (committed)`.
pub(super) fn status(artifact: &Artifact) -> String {
    let word = artifact.reason.map_or(artifact.status.name(), Reason::name);
    match artifact.tx {
        TxOutcome::NoOp => word.to_owned(),
        tx => format!("{word} ({tx})"),
    }
}
