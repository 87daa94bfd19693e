//! `demo`.

use std::fs;

use crate::cli::support::{TestHome, names, run, syscap};

#[test]
fn the_demo_is_as_it_must_be_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = syscap();
    let output = command.args(["demo", "--json"]).env("TMPDIR", folder.path()).output().unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
    let out = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let steps: Vec<_> = lines.iter().filter(|line| line["step"].is_u64()).collect();
    assert!(steps.len() >= 12);
    for line in &lines {
        assert!(line["as_expected"] != false, "{line}");
    }
    let reasons = [
        "bad_path",
        "link",
        "out_of_scope",
        "over_budget",
        "expired",
        "unknown_tool",
        "not_bound",
        "malformed",
        "not_granted",
        "key_reused",
        "revoked",
    ];
    for reason in reasons {
        assert!(steps.iter().any(|step| step["reason"] == reason), "{reason}");
    }
    assert_eq!(lines.last().unwrap()["unexpected"], 0);
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn a_kept_home_is_a_home() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("kept").to_str().unwrap().to_owned();
    run(["demo", "--keep", &home]).fine();
    assert_eq!(names(folder.path()), ["kept"]);
    let trust = format!("{home}/trust.cbor");
    run(["verify", &home, "--trust", &trust, "--require-anchor"]).fine();
    assert!(run(["log", "show", &home, "--json"]).fine().json().len() > 40);
    assert_eq!(run(["doctor", &home]).code, 0);
    // It is not overwritten.
    run(["demo", "--keep", &home]).failed(4);
}

#[test]
fn a_demo_that_can_not_be_given_says_so() {
    let home = TestHome::new();
    let mut command = syscap();
    let missing = home.beside("missing");
    let output = command.arg("demo").env("TMPDIR", &missing).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    fs::create_dir(home.beside("full")).unwrap();
    fs::write(home.beside("full/file"), "").unwrap();
    run(["demo", "--keep", &home.text_beside("full")]).failed(2);
    assert_eq!(names(&home.beside("full")), ["file"]);
}
