//! A process that commits until it is killed.

use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{Kit, found::Found, script::Script};

/// Tells the process where it is to commit.
const PLACE: &str = "SYSCAP_KIT_PLACE";
/// The child's output before the number of batches that it has committed.
const STORED: &str = "syscap-kit stored ";
/// More than anybody waits for before killing it.
const BATCHES_MAX: usize = 10_000;

/// The place for commits, in a process that is to be killed.
pub(super) fn place() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}

impl Kit<'_> {
    /// Commits, and says so after each batch, until killed.
    pub(super) fn die(&mut self, place: &Path) -> Result<(), Found> {
        let (mut store, mut script) = ((self.create)(place)?, Script::begin(0, "kit")?);
        for batches in 1..=BATCHES_MAX {
            script.next(&mut *store)?;
            let mut out = io::stdout().lock();
            // A test that is run may have begun a line.
            writeln!(out, "\n{STORED}{batches}")?;
            out.flush()?;
        }
        Ok(())
    }
}

/// Runs a test in a process of its own, kills it when it has committed so many batches, and says
/// how many it has acknowledged by then.
pub(super) fn kill(test: &str, place: &Path, batches: usize) -> Result<usize, Found> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--exact", test, "--nocapture"].map(OsStr::new))
        .env(PLACE, place)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let acknowledged = follow(&mut child, batches);
    // Also where it could not be followed; it may have ended by itself.
    drop(child.kill());
    child.wait()?;
    acknowledged
}

fn follow(child: &mut Child, batches: usize) -> Result<usize, Found> {
    let mut lines = BufReader::new(child.stdout.take().ok_or(Found::Ended)?).lines();
    let mut acknowledged = 0;
    while acknowledged < batches {
        let line = lines.next().ok_or(Found::Ended)??;
        acknowledged = number(&line).unwrap_or(acknowledged);
    }
    child.kill()?;
    // What it said before it was killed counts; a line that was cut off does not.
    while let Some(Ok(line)) = lines.next() {
        acknowledged = number(&line).unwrap_or(acknowledged);
    }
    Ok(acknowledged)
}

fn number(line: &str) -> Option<usize> {
    line.strip_prefix(STORED)?.parse().ok()
}
