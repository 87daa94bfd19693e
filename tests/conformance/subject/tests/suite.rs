//! syscap passes the whole suite. The runner kills what this process has started, so there is one
//! test in this program.

use serde_json::Value;

#[test]
fn syscap_passes_every_check() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json").to_string_lossy().into_owned();
    let words = ["--report", &report, "--", env!("CARGO_BIN_EXE_syscap-subject")];
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = syscap_conformance::main(&[], words.map(str::to_owned), &mut out, &mut err);
    let text = String::from_utf8_lossy(&out);
    assert_eq!(code, 0, "{text}{}", String::from_utf8_lossy(&err));
    let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.len() >= 250 && checks.iter().all(|check| check["grade"] == "pass"), "{text}");
}
