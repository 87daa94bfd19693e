//! `verify`: every exit code, by what was done to the log.

use std::fs;

use crate::support::{ECHO, TestHome, run};

fn anchor(args: &[&str]) -> (i32, String) {
    let run = run(args.iter().chain(&["--json"]));
    (run.code, run.one()["anchor"].as_str().unwrap().to_owned())
}

/// The trust file in the home counts only where it is named.
#[test]
fn only_a_trust_file_that_is_named_anchors() {
    let home = TestHome::new();
    let (path, trust) = (home.path(), home.text_beside("home/trust.cbor"));
    let own = (0, "self".to_owned());
    assert_eq!(anchor(&["verify", &path]), own);
    assert_eq!(anchor(&["verify", &path, "--require-anchor"]).0, 12);
    let anchored = (0, "trust_file".to_owned());
    assert_eq!(anchor(&["verify", &path, "--trust", &trust, "--require-anchor"]), anchored);
    let out = home.text_beside("out");
    run(["log", "export", &path, "--out", &out]).fine();
    assert_eq!(anchor(&["verify", &out]), own);
    assert_eq!(anchor(&["verify", &out, "--trust", &trust, "--require-anchor"]), anchored);
    fs::copy(&trust, home.beside("out/trust.cbor")).unwrap();
    assert_eq!(anchor(&["verify", &out, "--require-anchor"]).0, 12);
}

#[test]
fn another_homes_trust_file_is_foreign() {
    let (home, other) = (TestHome::new(), TestHome::new());
    let trust = other.text_beside("home/trust.cbor");
    let run = run(["verify", &home.path(), "--trust", &trust, "--json"]);
    assert_eq!(run.code, 10);
    assert_eq!(run.one()["verdict"], "tampered");
}

#[test]
fn a_trust_file_that_is_none_fails() {
    let home = TestHome::new();
    for file in ["home/keys/issuer.key", "missing", "home", "home/home.db"] {
        run(["verify", &home.path(), "--trust", &home.text_beside(file)]).failed(1);
    }
}

#[test]
fn a_report_counts_what_there_is() {
    let home = TestHome::new();
    let id = home.worker("a");
    home.call("a", &id, format!("{ECHO}\nx\n").as_bytes());
    let report = run(["verify", &home.path(), "--json"]).fine().one();
    assert_eq!(report["verdict"], "sound");
    assert_eq!(report["end"], "clean");
    assert_eq!(report["counts"]["intent"], 1);
    assert_eq!(report["counts"]["refusal"], 1);
    assert_eq!(report["findings_count"], 0);
    let log = home.log();
    assert_eq!(report["records"], log.len());
    assert_eq!(report["home_id"], log[0]["leaf"]);
    assert_eq!(report["head_leaf"], log.last().unwrap()["leaf"]);
}

/// One bit, anywhere in the records of an export.
#[test]
fn a_changed_bit_in_an_export_is_found() {
    let home = TestHome::new();
    let id = home.worker("a");
    home.call("a", &id, ECHO.as_bytes());
    let out = home.text_beside("out");
    run(["log", "export", &home.path(), "--out", &out]).fine();
    let file = home.beside("out/records.cborseq");
    let sound = fs::read(&file).unwrap();
    for part in 0..20 {
        let mut changed = sound.clone();
        let at = sound.len() * part / 20;
        changed[at] ^= 1;
        fs::write(&file, changed).unwrap();
        assert_eq!(run(["verify", &out]).code, 10, "byte {at}");
    }
    fs::write(&file, &sound[..sound.len() - 3]).unwrap();
    assert_eq!(run(["verify", &out]).code, 10);
    fs::write(&file, b"").unwrap();
    assert_eq!(run(["verify", &out]).code, 10);
    fs::write(&file, &sound).unwrap();
    assert_eq!(run(["verify", &out]).code, 0);
    let objects = home.beside("out/objects");
    let object = fs::read_dir(&objects).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(object).unwrap();
    assert_eq!(run(["verify", &out]).code, 10);
}
