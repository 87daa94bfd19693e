//! The command line.

use std::collections::BTreeMap;
use std::fs;
use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use rustix::process::{getpid, set_child_subreaper};

use crate::http::Url;
use crate::mcp_checks::{self, McpCheck};
use crate::{
    Check, Fault, Grade, Graded, Means, Outcome, Report, SET_2026_12, judge_mcp, judge_subject,
    read, upstream,
};

/// The exit code where the runner could not do its part.
const EXIT_FAULT: u8 = 3;
const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;

/// Run the conformance suite on an implementation (docs/conformance.md).
#[derive(Args, Debug)]
#[command(after_long_help = "\
COMMAND speaks line JSON on standard input and output; with --mcp it is a gateway, and the word
{upstream} in it becomes the command of the server behind it.

Ends with 0 where every check of a claimed area passed, 1 where one did not, none was claimed or the
baseline is stale, 2 for a wrong command line, 3 where the runner could not do its part.")]
pub struct Suite {
    /// The half for a gateway that stands before an MCP server.
    #[arg(long)]
    mcp: bool,
    /// Twenty checks, in some seconds.
    #[arg(long, conflicts_with = "mcp")]
    smoke: bool,
    /// The checks of an area (may be repeated).
    #[arg(long = "area", value_name = "AREA")]
    areas: Vec<String>,
    /// One check (may be repeated).
    #[arg(long = "check", value_name = "ID")]
    checks: Vec<String>,
    /// Another set than 2026-12.
    #[arg(long, value_name = "FILE", conflicts_with = "mcp")]
    set: Option<PathBuf>,
    /// Grades that are expected; an entry that is not so any more fails.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// The file for report.json.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The file for the same as JUnit's XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// The file for the same as a badge's JSON.
    #[arg(long, value_name = "FILE")]
    badge: Option<PathBuf>,
    /// A second verifier of exports, in words: `python3 verify.py`.
    #[arg(long, value_name = "COMMAND")]
    verifier: Option<String>,
    /// The file for the subject's standard error; none by default.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// How long an answer may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    /// Show the checks and their bugs, and run nothing.
    #[arg(long)]
    list: bool,
    /// Speak to the gateway at this URL, by HTTP. COMMAND starts it; without one it runs already,
    /// and --upstream is needed.
    #[arg(long, value_name = "URL", requires = "mcp")]
    url: Option<String>,
    /// Be the server behind a gateway, and write into FOLDER what reaches it. With --url, where
    /// that server writes.
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    upstream: Option<PathBuf>,
    /// The subject.
    #[arg(last = true, required_unless_present_any = ["list", "upstream", "url"])]
    command: Vec<String>,
}

/// A check that there is, and whether it is to be run.
struct Known<'k> {
    id: &'k str,
    area: &'k str,
    bug: &'k str,
    runs: bool,
}

/// The parts of a run besides the subject.
struct Prepared {
    name: String,
    text: String,
    checks: Vec<Check>,
    baseline: BTreeMap<String, String>,
}

impl Suite {
    /// Runs the suite. `own` are the words behind this program's name that lead here, so that it
    /// can start itself as a server. `out` gets the report, `err` faults and progress. The exit
    /// code. It makes this process the reaper of all that a subject starts, and kills that: it is
    /// to be a process of its own.
    pub fn run(&self, own: &[&str], out: &mut dyn Write, err: &mut dyn Write) -> u8 {
        if let (Some(folder), None) = (&self.upstream, &self.url) {
            return if upstream::serve(folder).is_ok() { 0 } else { EXIT_FAULT };
        }
        let mut said = String::new();
        let code = self.said(own, &mut said, err);
        match out.write_all(said.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => code,
            Err(_) => EXIT_FAULT,
        }
    }

    /// True if a check is to be run.
    fn wants(&self, id: &str, area: &str) -> bool {
        (self.checks.is_empty() || self.checks.iter().any(|one| one == id))
            && (self.areas.is_empty() || self.areas.iter().any(|one| one == area))
    }

    fn prepare(&self) -> Result<Prepared, String> {
        let load = |path: &Path| {
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        if let Some(url) = &self.url {
            Url::parse(url)?;
            if self.command.is_empty() && self.upstream.is_none() {
                let needs = "the gateway's command, or --upstream FOLDER if it runs already";
                return Err(format!("--url {url} needs {needs}"));
            }
        }
        let (name, text) = match &self.set {
            Some(path) => (path.display().to_string(), load(path)?),
            None => ("2026-12".to_owned(), SET_2026_12.to_owned()),
        };
        let checks = read(&text)?;
        let known = self.known(&checks);
        let has = |id: &String| known.iter().any(|check| check.id == id);
        if let Some(unknown) = self.checks.iter().find(|id| !has(id)) {
            return Err(format!("{unknown}: no such check"));
        }
        let has_area = |area: &String| known.iter().any(|check| check.area == area);
        if let Some(unknown) = self.areas.iter().find(|area| !has_area(area)) {
            return Err(format!("{unknown}: no such area"));
        }
        let mut baseline: BTreeMap<String, String> = match &self.baseline {
            Some(path) => toml::from_str(&load(path)?).map_err(|error| error.to_string())?,
            None => BTreeMap::new(),
        };
        if let Some(unknown) = baseline.keys().find(|id| !has(id)) {
            return Err(format!("{unknown}: in the baseline, and no check"));
        }
        // What is not run is not stale.
        baseline.retain(|id, _| known.iter().any(|check| check.id == id && check.runs));
        Ok(Prepared { name, text, checks, baseline })
    }

    /// The checks of the half that is asked for.
    fn known<'k>(&self, checks: &'k [Check]) -> Vec<Known<'k>> {
        if self.mcp {
            let of = |&McpCheck { id, area, bug, .. }: &'static McpCheck| Known {
                id,
                area,
                bug,
                runs: self.wants(id, area),
            };
            mcp_checks::CHECKS.iter().map(of).collect()
        } else {
            let of = |check: &'k Check| {
                let (id, area, bug) = (&*check.id, &*check.area, &*check.bug);
                Known { id, area, bug, runs: self.runs(check) }
            };
            checks.iter().map(of).collect()
        }
    }

    fn runs(&self, check: &Check) -> bool {
        (!self.smoke || check.is_smoke) && self.wants(&check.id, &check.area)
    }

    fn said(&self, own: &[&str], said: &mut String, err: &mut dyn Write) -> u8 {
        let prepared = match self.prepare() {
            Ok(prepared) => prepared,
            Err(wrong) => {
                tell(err, &format!("{wrong}\n"));
                return EXIT_USAGE;
            }
        };
        if self.list {
            for Known { id, bug, runs, .. } in self.known(&prepared.checks) {
                if runs {
                    *said += &format!("{id}: {bug}\n");
                }
            }
            return 0;
        }
        if set_child_subreaper(Some(getpid())).is_err() {
            tell(err, "harness: this process can't reap what a subject starts\n");
            return EXIT_FAULT;
        }
        let outcome = match self.judged(own, prepared.checks, err) {
            Ok(outcome) => outcome,
            Err(fault) => {
                tell(err, &format!("{}\n", fault.text()));
                return EXIT_FAULT;
            }
        };
        let report = Report {
            outcome: &outcome,
            set: (&prepared.name, &prepared.text),
            command: &self.command,
            baseline: &prepared.baseline,
        };
        *said += &report.text();
        let files = [
            (&self.report, format!("{:#}\n", report.json())),
            (&self.junit, report.junit()),
            (&self.badge, format!("{}\n", report.badge())),
        ];
        for (path, text) in files {
            if let Some(path) = path
                && let Err(error) = fs::write(path, &text)
            {
                tell(err, &format!("{}: {error}\n", path.display()));
                return EXIT_FAULT;
            }
        }
        let judged = outcome.grades.iter().any(|graded| graded.grade != Grade::NotClaimed);
        if !judged {
            said.push_str("nothing of this is claimed: no check was judged\n");
        }
        let failed = !judged || report.failures().next().is_some() || !report.stale().is_empty();
        if failed { EXIT_FAILED } else { 0 }
    }

    /// Holds the subject against what was asked for. A terminal is shown how far it is.
    fn judged(
        &self,
        own: &[&str],
        mut checks: Vec<Check>,
        err: &mut dyn Write,
    ) -> Result<Outcome, Fault> {
        let means = Means {
            command: self.command.clone(),
            here: None,
            second: self
                .verifier
                .iter()
                .flat_map(|words| words.split_whitespace())
                .map(str::to_owned)
                .collect(),
            url: self.url.clone(),
            upstream: self.upstream.clone().unwrap_or_default(),
            timeout: Duration::from_secs(self.timeout),
            own: own.iter().copied().chain(["--upstream"]).map(str::to_owned).collect(),
            log: self.log.clone(),
        };
        let shows = std::io::stderr().is_terminal();
        let mut done = 0_usize;
        let mut progress = |graded: &Graded| {
            done = done.saturating_add(1);
            if shows {
                tell(err, &format!("\r\x1b[K{done} {} {}", graded.id, graded.grade.word()));
            }
        };
        let outcome = if self.mcp {
            judge_mcp(&means, |id, area| self.wants(id, area), &mut progress)
        } else {
            checks.retain(|check| self.runs(check));
            judge_subject(checks, &means, &mut progress)
        };
        if shows {
            tell(err, "\r\x1b[K");
        }
        outcome
    }
}

/// Says something that nobody needs to hear: the exit code tells.
fn tell(err: &mut dyn Write, text: &str) {
    drop(err.write_all(text.as_bytes()));
}
