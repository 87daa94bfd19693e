//! The command line.

use std::collections::BTreeMap;
use std::fs;
use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{getpid, set_child_subreaper};

use crate::{
    Check, Fault, Grade, Graded, Means, Outcome, Report, SET_2026_12, areas, judge_mcp,
    judge_subject, mcp_checks, read, upstream,
};

/// The options, for people.
pub const USAGE: &str = "\
usage: syscap conformance [OPTIONS] -- COMMAND..

Holds a subject against the conformance suite: COMMAND speaks line JSON (docs/conformance.md).

  --mcp              COMMAND is an MCP server that stands before another one: {upstream}
  --smoke            twenty checks, in some seconds
  --area AREA        the checks of an area; may be repeated
  --check ID         one check; may be repeated
  --set FILE         another set than 2026-12
  --baseline FILE    grades that are expected; an entry that is not so any more fails
  --report FILE      report.json
  --junit FILE       the same as JUnit's XML
  --badge FILE       the same as a badge's JSON
  --verifier CMD     a second verifier of exports, such as `python3 verify.py`
  --log FILE         where the subject's standard error goes; nowhere if absent
  --timeout SECONDS  how long an answer may take (10)
  --list             the checks and their bugs; runs nothing

Ends with 0 where every check of a claimed area passed, 1 where one did not, none was claimed or the
baseline is stale, 2 for a wrong command line, 3 where the runner could not do its part.
";

/// The exit code where the runner could not do its part.
pub const EXIT_FAULT: u8 = 3;
/// The word by which a runner starts itself as the server behind a gateway.
const UPSTREAM: &str = "--upstream";
const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;

#[derive(Default)]
struct Arguments {
    smoke: bool,
    mcp: bool,
    list: bool,
    areas: Vec<String>,
    checks: Vec<String>,
    files: BTreeMap<&'static str, PathBuf>,
    verifier: Vec<String>,
    timeout: Option<u64>,
    command: Vec<String>,
}

fn arguments(words: impl IntoIterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut found = Arguments::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} takes a value"));
        match word.as_str() {
            "--" => {
                found.command = words.collect();
                break;
            }
            "-h" | "--help" => return Ok(None),
            "--smoke" => found.smoke = true,
            "--mcp" => found.mcp = true,
            "--list" => found.list = true,
            "--area" => found.areas.push(value()?),
            "--check" => found.checks.push(value()?),
            "--verifier" => {
                found.verifier = value()?.split_whitespace().map(str::to_owned).collect();
            }
            "--timeout" => {
                let seconds = value()?.parse().map_err(|_| "--timeout takes seconds".to_owned());
                found.timeout = Some(seconds?);
            }
            other => {
                let files = ["--set", "--baseline", "--report", "--junit", "--badge", "--log"];
                let file = files.into_iter().find(|file| *file == other);
                let file = file.ok_or_else(|| format!("unknown argument: {other}"))?;
                found.files.insert(file, value()?.into());
            }
        }
    }
    if found.command.is_empty() && !found.list {
        return Err("no command: say it behind --".to_owned());
    }
    Ok(Some(found))
}

/// What a run needs besides the subject.
struct Prepared {
    name: String,
    text: String,
    checks: Vec<Check>,
    baseline: BTreeMap<String, String>,
}

fn prepare(of: &Arguments) -> Result<Prepared, String> {
    let load = |path: &Path| {
        fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let (name, text) = match of.files.get("--set") {
        Some(path) => (path.display().to_string(), load(path)?),
        None => ("2026-12".to_owned(), SET_2026_12.to_owned()),
    };
    let mut checks = read(&text)?;
    let mcp = |id: &String| mcp_checks::CHECKS.iter().any(|check| check.id == id);
    let known = |id: &String| checks.iter().any(|check| check.id == *id) || mcp(id);
    if let Some(unknown) = of.checks.iter().find(|id| !known(id)) {
        return Err(format!("{unknown}: no such check"));
    }
    let area = |area: &String| areas().any(|known| known == area);
    if let Some(unknown) = of.areas.iter().find(|one| !area(one)) {
        return Err(format!("{unknown}: no such area"));
    }
    checks.retain(|check| {
        (!of.smoke || check.is_smoke)
            && (of.areas.is_empty() || of.areas.contains(&check.area))
            && (of.checks.is_empty() || of.checks.contains(&check.id))
    });
    let baseline = match of.files.get("--baseline") {
        Some(path) => toml::from_str(&load(path)?).map_err(|error| error.to_string())?,
        None => BTreeMap::new(),
    };
    Ok(Prepared { name, text, checks, baseline })
}

/// Runs the suite as a command line says. `own` are the words behind this program's name that lead
/// here, so that it can start itself as a server. `out` gets the report, `err` faults and progress. The
/// exit code. It makes this process the reaper of all that a subject starts, and kills that: it
/// is to be a process of its own.
pub fn main(
    own: &[&str],
    words: impl IntoIterator<Item = String>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let mut said = String::new();
    let words: Vec<String> = words.into_iter().collect();
    // It is its own server behind a gateway.
    if let [word, folder] = &words[..]
        && word == UPSTREAM
    {
        return if upstream::serve(Path::new(folder)).is_ok() { 0 } else { EXIT_FAULT };
    }
    let code = match arguments(words) {
        Ok(Some(arguments)) => run(own, &arguments, &mut said, err),
        Ok(None) => {
            said.push_str(USAGE);
            0
        }
        Err(wrong) => {
            tell(err, &format!("{wrong}\n{USAGE}"));
            EXIT_USAGE
        }
    };
    match out.write_all(said.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => code,
        Err(_) => EXIT_FAULT,
    }
}

/// Says something that nobody needs to hear: the exit code tells.
fn tell(err: &mut dyn Write, text: &str) {
    drop(err.write_all(text.as_bytes()));
}

fn run(own: &[&str], arguments: &Arguments, said: &mut String, err: &mut dyn Write) -> u8 {
    let prepared = match prepare(arguments) {
        Ok(prepared) => prepared,
        Err(wrong) => {
            tell(err, &format!("{wrong}\n"));
            return EXIT_USAGE;
        }
    };
    if arguments.list {
        for check in &prepared.checks {
            *said += &format!("{}: {}\n", check.id, check.bug);
        }
        return 0;
    }
    if set_child_subreaper(Some(getpid())).is_err() {
        tell(err, "harness: this process can't reap what a subject starts\n");
        return EXIT_FAULT;
    }
    let outcome = match judged(own, arguments, prepared.checks, err) {
        Ok(outcome) => outcome,
        Err(fault) => {
            tell(err, &format!("{}\n", fault.text()));
            return EXIT_FAULT;
        }
    };
    let report = Report {
        outcome: &outcome,
        set: (&prepared.name, &prepared.text),
        command: &arguments.command,
        baseline: &prepared.baseline,
    };
    *said += &report.text();
    let files = [
        ("--report", format!("{:#}\n", report.json())),
        ("--junit", report.junit()),
        ("--badge", format!("{}\n", report.badge())),
    ];
    for (option, text) in files {
        if let Some(path) = arguments.files.get(option)
            && let Err(error) = Report::write(path, &text)
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
    own: &[&str],
    arguments: &Arguments,
    checks: Vec<Check>,
    err: &mut dyn Write,
) -> Result<Outcome, Fault> {
    let means = Means {
        command: arguments.command.clone(),
        here: None,
        second: arguments.verifier.clone(),
        timeout: Duration::from_secs(arguments.timeout.unwrap_or(10)),
        own: own.iter().copied().chain([UPSTREAM]).map(str::to_owned).collect(),
        log: arguments.files.get("--log").cloned(),
    };
    let shows = std::io::stderr().is_terminal();
    let mut done = 0_usize;
    let mut progress = |graded: &Graded| {
        done = done.saturating_add(1);
        if shows {
            tell(err, &format!("\r\x1b[K{done} {} {}", graded.id, graded.grade.word()));
        }
    };
    let outcome = if arguments.mcp {
        let wanted = |id: &str, area: &str| {
            let (ids, areas) = (&arguments.checks, &arguments.areas);
            (ids.is_empty() || ids.iter().any(|one| one == id))
                && (areas.is_empty() || areas.iter().any(|one| one == area))
        };
        judge_mcp(&means, wanted, &mut progress)
    } else {
        judge_subject(checks, &means, &mut progress)
    };
    if shows {
        tell(err, "\r\x1b[K");
    }
    outcome
}
