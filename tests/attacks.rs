//! `docs/attacks.md`: each case of the catalogue has a test that is there, or a reason for none.

use crate::named;
#[test]
fn each_case_has_a_test_or_a_reason() {
    let (rows, tests) = named::rows_and_tests("docs/attacks.md");
    let cases: Vec<&String> = rows.iter().filter(|row| !row.contains("| shown by |")).collect();
    for row in &cases {
        let said = ["::", "*Not tested*", "*Does not apply*"];
        assert!(said.iter().any(|word| row.contains(word)), "{row}");
    }
    assert!(cases.len() > 150 && tests > 200, "{} cases, {tests} tests", cases.len());
}

/// Each published advisory of the catalogue is a test by its number.
#[test]
fn advisories_are_tests_by_their_numbers() {
    let (rows, _) = named::rows_and_tests("docs/attacks.md");
    for id in [
        "CVE-2024-51756",
        "CVE-2026-27190",
        "CVE-2026-32282",
        "CVE-2026-39822",
        "GHSA-2r75-cxrj-cmph",
        "GHSA-4ch3-9j33-3pmj",
        "GHSA-m87g-7g5m-wpx4",
    ] {
        let name = format!("::{}", id.to_ascii_lowercase().replace('-', "_"));
        let shown = rows.iter().any(|row| row.contains(id) && row.contains(&name));
        assert!(shown, "{id} has no test of its name");
    }
}
