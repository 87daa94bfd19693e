//! syscap passes the whole suite, as a command and in this process. The runner kills what this
//! process has started, so only one test here starts a command.

use std::io::BufReader;
use std::time::Duration;

use clap::{Args as _, FromArgMatches as _};
use serde_json::Value;
use syscap_conformance::{Grade, Means, SET_2026_12, Suite, judge_subject, read};

#[test]
fn syscap_passes_every_check() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json").to_string_lossy().into_owned();
    let words = ["suite", "--report", &report, "--", env!("CARGO_BIN_EXE_syscap-subject")];
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let command = Suite::augment_args(clap::Command::new("suite"));
    let suite = Suite::from_arg_matches(&command.get_matches_from(words)).unwrap();
    let code = suite.run(&[], &mut out, &mut err);
    let text = String::from_utf8_lossy(&out);
    assert_eq!(code, 0, "{text}{}", String::from_utf8_lossy(&err));
    let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.len() >= 250 && checks.iter().all(|check| check["grade"] == "pass"), "{text}");
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
