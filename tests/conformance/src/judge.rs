//! The evidence of an export: the verdict of `syscap-verify`, and of a second verifier, and the
//! calls that were in flight at a kill.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use syscap_format::{Body, Decoder, Profile, RECORDS_FILE, Record, Seq};
use syscap_verify::{Options, Report, Soundness, verify_export};

use crate::subject::Fault;

/// The evidence of an export.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// `sound`, `incomplete`, `tampered`, `newer` or `unreadable`.
    pub(crate) verdict: &'static str,
    /// When the first record was made, in ms since 1970.
    pub(crate) first_ms: u64,
    /// Records of each kind, by name.
    pub(crate) counts: BTreeMap<String, u64>,
    /// True if an intent without an outcome stands before a boot that came after it.
    pub(crate) was_open: bool,
    /// The records' bytes.
    pub(crate) bytes: Vec<u8>,
}

impl Found {
    pub(crate) fn count(&self, kind: &str) -> u64 {
        self.counts.get(kind).copied().unwrap_or(0)
    }
}

/// Judges an export. A second verifier is a command that takes the folder and ends with the exit
/// code of `syscap verify`.
pub(crate) fn judge(folder: &Path, second: &[String]) -> Result<Found, Fault> {
    let Ok(bytes) = fs::read(folder.join(RECORDS_FILE)) else {
        return Ok(Found { verdict: "unreadable", ..Found::default() });
    };
    let report = verify_export(folder, &Options::default());
    let (verdict, code) = report.as_ref().map_or(("unreadable", 4), |report| {
        let verdict = report.verdict();
        let name = match verdict {
            Soundness::Sound => "sound",
            Soundness::Tampered => "tampered",
            Soundness::Newer => "newer",
            Soundness::Incomplete | Soundness::NotAnchored => "incomplete",
        };
        (name, i32::from(verdict.exit_code()))
    });
    if let [program, arguments @ ..] = second {
        let mut command = Command::new(program);
        command.args(arguments).arg(folder).stdin(Stdio::null()).stdout(Stdio::null());
        let said = command.status().map_err(|error| {
            Fault::Harness(format!("the second verifier does not start: {error}"))
        })?;
        if said.code() != Some(code) {
            let told = said.code().map_or_else(|| "nothing".to_owned(), |code| code.to_string());
            let what = format!("syscap-verify says {verdict} ({code}), the second verifier {told}");
            return Err(Fault::Harness(what));
        }
    }
    let counts = |report: &Report| {
        report.counts.iter().map(|(kind, count)| (kind.name().to_owned(), *count)).collect()
    };
    Ok(Found {
        verdict,
        first_ms: report.as_ref().map_or(0, |report| report.first_time.get()),
        counts: report.as_ref().map(counts).unwrap_or_default(),
        was_open: was_open(&bytes),
        bytes,
    })
}

fn was_open(bytes: &[u8]) -> bool {
    let mut decoder = Decoder::new(bytes, Profile::CONTROL);
    let mut open: BTreeSet<Seq> = BTreeSet::new();
    while let Ok(item) = decoder.item() {
        let Ok(record) = Record::decode(item.as_bytes()) else { return false };
        match record.body {
            Body::Intent(_) => drop(open.insert(record.seq)),
            Body::Outcome(outcome) => drop(open.remove(&outcome.intent)),
            Body::Boot(_) if !open.is_empty() => return true,
            _ => {}
        }
    }
    false
}
