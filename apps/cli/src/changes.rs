//! `syscap changes`: which files that other programs execute or obey appeared or changed in the
//! workspace of a run.

mod baseline;
mod survey;

use std::path::{Path, PathBuf};

use clap::Args;
use syscap::boundary::runs;
use syscap::{kernel::StoreError, syscalls::auto_executed::row_of_name};

pub(crate) use self::baseline::Baseline;
use self::survey::Change;
use crate::exit::{Ended, Exit, Failure, diagnose};
use crate::output::{Object, Out};

/// Most changes that a run lists at its end.
const LISTED_MAX: usize = 200;

/// List the files that runs changed and that other programs execute or obey.
#[derive(Args, Debug)]
#[command(after_long_help = "\
`syscap run` notes these files at its start and lists what changed at its end. Of a run that was
killed, or goes on, this command lists the same. Look at each file before you start git, an editor,
an agent or a build in the workspace.

Nothing is known of files that the listed ones refer to, and of all else that an agent wrote: a
build script or a test runs when you run it.

Examples:
  syscap changes home
  syscap changes home --forget")]
pub(crate) struct Changes {
    /// The home.
    home: PathBuf,
    /// Forget what the runs noted, when it has been listed.
    #[arg(long)]
    forget: bool,
}

impl Changes {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        if !self.home.is_dir() {
            let missing = syscap::Error::Home(StoreError::Missing);
            return Err(Failure::home(&self.home)(missing));
        }
        let mut failed = false;
        for baseline in Baseline::all(&self.home)? {
            let listed = baseline.and_then(|baseline| list(&baseline, out).map(|()| baseline));
            match listed {
                Ok(baseline) if self.forget => {
                    out.flush()?;
                    baseline.forget(&self.home)?;
                }
                Ok(_) => {}
                Err(failure) => {
                    failure.report();
                    failed = true;
                }
            }
        }
        if self.forget && !failed {
            runs::forget(&self.home)?;
        }
        Ok(if failed { Exit::Failed } else { Exit::Done })
    }
}

fn list(baseline: &Baseline, out: &mut Out) -> Result<(), Failure> {
    let (changes, complete) =
        baseline.changes().map_err(Failure::file(&baseline.head.workspace))?;
    let workspace = baseline.shown_workspace();
    let json = || {
        let run = Object::new().uint("run", baseline.number.get());
        run.text("agent", baseline.head.agent.as_str()).text("workspace", &workspace)
    };
    let end = if complete { "" } else { ", not complete" };
    let many = changes.len();
    let head = format!(
        "run {} of {} in {workspace}: {many} changed{end}",
        baseline.number, baseline.head.agent
    );
    out.both(&head, json().uint("changed", count(many)).flag("complete", complete))?;
    for (path, change) in &changes {
        let word = word(*change);
        out.both(&line(path, *change), json().text("path", path).text("change", word))?;
    }
    Ok(())
}

fn count(many: usize) -> u64 {
    u64::try_from(many).unwrap_or(u64::MAX)
}

const fn word(change: Change) -> &'static str {
    match change {
        Change::New => "new",
        Change::Changed => "changed",
    }
}

fn line(path: &str, change: Change) -> String {
    let row = path.split('/').find_map(row_of_name);
    let source = row.map_or_else(String::new, |row| format!(" ({})", row.source));
    format!("  {:<8}{path}{source}", word(change))
}

/// A run's baseline; its end lists the changes.
pub(crate) struct Noted<'h> {
    home: &'h Path,
    baseline: Baseline,
}

impl<'h> Noted<'h> {
    pub(crate) const fn new(home: &'h Path, baseline: Baseline) -> Self {
        Self { home, baseline }
    }

    /// Lists what changed on standard error. Once it is all listed it is forgotten.
    fn list(&self) -> Result<(), Failure> {
        let baseline = &self.baseline;
        let (changes, complete) =
            baseline.changes().map_err(Failure::file(&baseline.head.workspace))?;
        if !changes.is_empty() {
            diagnose("files that other programs execute or obey have changed; look at each first:");
        }
        for (path, change) in changes.iter().take(LISTED_MAX) {
            diagnose(&line(path, *change));
        }
        if !complete {
            diagnose("not all of the workspace could be looked at: there may be more");
        }
        let home = crate::output::word_of(self.home);
        match changes.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
            Some(more) => diagnose(&format!("and {more} more: syscap changes {home}")),
            None => baseline.forget(self.home)?,
        }
        Ok(())
    }
}

impl Drop for Noted<'_> {
    /// However the run ends. A list that can't be printed stays in the home.
    fn drop(&mut self) {
        if let Err(failure) = self.list() {
            diagnose(&format!("what changed in the workspace is not known: {failure}"));
        }
    }
}
