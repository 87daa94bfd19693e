//! The effects on the disk afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use syscap::Runtime;
use syscap::boundary::Scratch;

use super::attempts::{PLAN, workspace};
use super::stage::Stage;
use crate::exit::Failure;

/// The content of the file outside.
const SECRET: &str = "the secret that no agent is to see\n";

/// Makes a file outside all that agents are granted.
pub(super) fn secret(scratch: &Scratch) -> Result<PathBuf, Failure> {
    let file = scratch.folder("outside")?.join("secret.txt");
    fs::write(&file, SECRET).map_err(Failure::file(&file))?;
    Ok(file)
}

pub(super) fn show(stage: &mut Stage<'_>, runtime: &Runtime, secret: &Path) -> Result<(), Failure> {
    stage.out.text("on the disk:")?;
    let mine = workspace(runtime, "researcher")?;
    let frugal = workspace(runtime, "frugal")?;
    for (what, path, expected) in [
        ("notes/plan.txt holds", mine.join("notes/plan.txt"), Some(PLAN)),
        ("once.txt holds", mine.join("once.txt"), Some("once")),
        ("frugal's a.txt holds", frugal.join("a.txt"), Some("def")),
        ("b.txt", mine.join("b.txt"), None),
        ("the secret outside holds", secret.to_path_buf(), Some(SECRET)),
    ] {
        let found = fs::read_to_string(&path).ok();
        let says = found.as_ref().map_or("is not there".to_owned(), |text| format!("{text:?}"));
        stage.fact(what, &says, found.as_deref() == expected)?;
    }
    let around = secret.parent().unwrap_or(secret);
    let beside = fs::read_dir(around).map_err(Failure::file(around))?.count();
    stage.fact("files beside it", &beside.to_string(), beside == 1)
}
