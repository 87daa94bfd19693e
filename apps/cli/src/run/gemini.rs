//! Checks that Gemini CLI reads the settings of a run: from 0.60.0 on it skips a file of system settings
//! unless root owns it and every folder above it, and nobody else may write there. A run's settings are
//! the user's own, so that such a version would ask no hook, and start other servers.

use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use syscap::format::{Item, json};

use crate::exit::Failure;
use crate::hook::version::Version;

/// The name of its package.
const PACKAGE: &str = "@google/gemini-cli";
/// The first version that skips the settings.
const SKIPS: Version = Version::new([0, 60, 0]);
/// Longest description of a package that is read.
const BYTES_MAX: u64 = 1 << 20;

/// Refuses a version that would run without its hook, or one that can't be told.
pub(super) fn check(program: &Path, arguments: &[OsString]) -> Result<(), Failure> {
    let words = arguments.iter().map(PathBuf::from);
    let version = [program.to_path_buf()].into_iter().chain(words).find_map(|it| version(&it));
    let which = match version {
        Some(version) if version < SKIPS => return Ok(()),
        Some(version) => format!("Gemini CLI {version}"),
        None => "Gemini CLI of an unknown version".to_owned(),
    };
    let advice = format!(
        "from {SKIPS} on it skips the settings of a run, and would ask no hook about its tools; take an \
         older one, or go on without the hook, in the same boundary: --client none"
    );
    Err(Failure::Usage { what: which, advice })
}

/// The version of the package that a file belongs to, if it is the client's.
fn version(file: &Path) -> Option<Version> {
    let real = fs::canonicalize(file).ok()?;
    real.ancestors().skip(1).find_map(|folder| {
        let mut text = Vec::new();
        let file = fs::File::open(folder.join("package.json")).ok()?;
        file.take(BYTES_MAX).read_to_end(&mut text).ok()?;
        let package = json::to_data(&text).ok()?;
        let field = |name| package.item().get(name).and_then(Item::as_text);
        Version::read(field("version").filter(|_| field("name") == Some(PACKAGE))?)
    })
}
