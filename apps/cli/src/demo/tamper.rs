//! The log is verified, then one byte of a copy is changed.

use std::fs;
use std::path::{Path, PathBuf};

use syscap::Home;
use syscap::audit::SqliteReader;
use syscap::audit::export::export;
use syscap::boundary::Scratch;
use syscap::format::{OBJECTS_FOLDER, RECORDS_FILE};
use syscap::kernel::StoreError;
use syscap::verify::{Options, Soundness, TrustSource};

use super::stage::Stage;
use crate::{exit::Failure, verify};

pub(super) fn show(stage: &mut Stage<'_>, home: &Path, scratch: &Scratch) -> Result<(), Failure> {
    stage.out.text("the log:")?;
    let (whole, changed) = (scratch.path().join("export"), scratch.path().join("changed"));
    let mut reader = SqliteReader::open(home).map_err(syscap::Error::Home)?;
    let exported = export(&mut reader, &whole)
        .map_err(|error| Failure::Audit { path: whole.clone(), problem: error.to_string() })?;
    copy(&whole, &changed)?;
    let at = flip(&changed.join(RECORDS_FILE))?;
    let trust = Home::at(home).trust();
    for (what, log, expected) in [
        ("the home", home, Soundness::Sound),
        ("its export", &*whole, Soundness::Sound),
        ("a copy of it", &*changed, Soundness::Tampered),
    ] {
        let options = Options { trust: TrustSource::File(trust.clone()), ..Options::default() };
        let Some(report) = verify::verify(log, &options)? else {
            return Err(Failure::home(log)(syscap::Error::Home(StoreError::Damaged)));
        };
        let found = report.findings.first().map_or(String::new(), |finding| {
            format!(", record {}: {:?}", finding.seq, finding.fault)
        });
        let verdict = verify::verdict_name(report.verdict());
        let flipped = match expected {
            Soundness::Tampered => format!(" with byte {at} of its records changed"),
            _ => format!(" of {} records", exported.records),
        };
        let as_expected = report.verdict() == expected;
        stage.fact(&format!("{what}{flipped}"), &format!("{verdict}{found}"), as_expected)?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let objects: PathBuf = to.join(OBJECTS_FOLDER);
    fs::create_dir_all(&objects).map_err(Failure::file(&objects))?;
    let copy = |from: &Path, to: &Path| fs::copy(from, to).map(drop).map_err(Failure::file(from));
    copy(&from.join(RECORDS_FILE), &to.join(RECORDS_FILE))?;
    let source = from.join(OBJECTS_FOLDER);
    for entry in fs::read_dir(&source).map_err(Failure::file(&source))? {
        let entry = entry.map_err(Failure::file(&source))?;
        copy(&entry.path(), &objects.join(entry.file_name()))?;
    }
    Ok(())
}

/// Changes one bit in the middle of a file, and says where.
fn flip(path: &Path) -> Result<usize, Failure> {
    let mut bytes = fs::read(path).map_err(Failure::file(path))?;
    let at = bytes.len().div_euclid(2);
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1;
    }
    fs::write(path, bytes).map_err(Failure::file(path))?;
    Ok(at)
}
