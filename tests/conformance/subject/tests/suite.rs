//! syscap passes the whole suite, as a command and in this process, and bent it does not.

use std::collections::BTreeSet;
use std::fs;
use std::io::BufReader;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::{Args as _, FromArgMatches as _};
use serde_json::Value;
use syscap_conformance::{Grade, Means, SET_2026_12, Suite, judge_subject, read};

const SUBJECT: &str = env!("CARGO_BIN_EXE_syscap-subject");

static ONE: Mutex<()> = Mutex::new(());

/// The exit code, what was printed, and the report. One at a time: a runner kills all that its
/// process has started.
fn suite(options: &[&str], command: &[&str]) -> (u8, String, Value) {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json").to_string_lossy().into_owned();
    let words = [&["suite", "--report", &report], options, &["--"], command].concat();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let parser = Suite::augment_args(clap::Command::new("suite"));
    let suite = Suite::from_arg_matches(&parser.get_matches_from(words)).unwrap();
    let code = suite.run(&[], &mut out, &mut err);
    let report = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
    (code, String::from_utf8([out, err].concat()).unwrap(), report)
}

#[test]
fn syscap_passes_every_check() {
    let (code, text, report) = suite(&[], &[SUBJECT]);
    assert_eq!(code, 0, "{text}");
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.len() >= 250 && checks.iter().all(|check| check["grade"] == "pass"), "{text}");
}

/// Each check of `record` and `recover` fails where syscap is bent, and the page says by what.
#[test]
fn bent_syscap_fails_each_check_that_is_named() {
    let toy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../toy");
    let bent = toy.join("bent.py").to_string_lossy().into_owned();
    let faults: toml::Table = fs::read_to_string(toy.join("bent.toml")).unwrap().parse().unwrap();
    let page = fs::read_to_string(toy.join("../../../docs/conformance.md")).unwrap();
    let mut named = BTreeSet::new();
    for (fault, checks) in &faults {
        let checks: Vec<&str> =
            checks.as_array().unwrap().iter().flat_map(|id| id.as_str()).collect();
        let row = format!("| `{fault}` | `{}` |", checks.join("`, `"));
        assert!(page.contains(&row), "not in the page: {row}");
        let options: Vec<&str> = checks.iter().flat_map(|id| ["--check", id]).collect();
        let (code, text, report) = suite(&options, &["python3", &bent, fault, SUBJECT]);
        let failed = report["checks"].as_array().unwrap().iter();
        let failed = failed.filter(|check| check["grade"] == "fail").count();
        assert_eq!((code, failed), (1, checks.len()), "{fault}: {text}");
        named.extend(checks.into_iter().map(str::to_owned));
    }
    let all = read(SET_2026_12).unwrap().into_iter();
    let all = all.filter(|check| check.area == "record" || check.area == "recover");
    assert_eq!(named, all.map(|check| check.id).collect());
    let (code, text, _) =
        suite(&["--check", "recover.kill-key"], &["python3", &bent, "Straight", SUBJECT]);
    assert_eq!(code, 0, "what bends nothing passes: {text}");
}

/// A check for the set that follows that of December 2026, which is frozen.
const FAILURE: &str = r#"
[[check]]
id = "record.tool-failed"
area = "record"
bug = "a tool that failed is said to have done its work"
steps = [
    { grant = "g", tools = { get = ["a", "fails"] } },
    { call = "get", by = "g", args = { page = "a" } },
    { call = "get", by = "g", args = { page = "fails" }, label = "f" },
    { export = "e" },
]
must = [{ hits = "/a" }, { hits = "/fails" }, { records = "outcome", above = 1, export = "e" }]
never = [{ told = "f", text = "" }]
"#;

#[test]
fn tools_failure_is_answered_as_one() {
    let bent = Path::new(env!("CARGO_MANIFEST_DIR")).join("../toy/bent.py");
    let bent = ["python3", &*bent.to_string_lossy(), "SaysOk", SUBJECT].map(str::to_owned);
    for (command, grade) in [(vec![SUBJECT.to_owned()], "pass"), (bent.to_vec(), "fail")] {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let means = Means { command, timeout: Duration::from_secs(10), ..Means::default() };
        let outcome = judge_subject(read(FAILURE).unwrap(), &means, &mut |_| {}).unwrap();
        assert_eq!(outcome.grades[0].grade.word(), grade, "{:?}", outcome.grades);
    }
}

/// All but what needs a kill or a disk of its own.
#[test]
fn syscap_passes_in_this_process() {
    let means = Means {
        here: Some(|requests, answers| syscap_subject::serve(BufReader::new(requests), answers)),
        timeout: Duration::from_secs(10),
        ..Means::default()
    };
    let checks = read(SET_2026_12).unwrap();
    let outcome = judge_subject(checks, &means, &mut |_| {}).unwrap();
    let apart = |graded: &syscap_conformance::Graded| {
        graded.area == "recover" || graded.id.starts_with("record.full-disk")
    };
    let (apart, here): (Vec<_>, Vec<_>) = outcome.grades.iter().partition(|one| apart(one));
    let bad: Vec<_> = here.iter().filter(|one| one.grade != Grade::Pass).collect();
    assert!(bad.is_empty() && here.len() > 220, "{bad:#?}");
    assert!(apart.iter().all(|one| matches!(one.grade, Grade::Unproved(_))), "{apart:#?}");
}
