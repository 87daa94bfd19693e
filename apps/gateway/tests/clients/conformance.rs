//! The protocol's conformance suite, on the fixture alone and through the gateway: the same
//! checks come to the same.

use std::{collections::BTreeMap, fs};

use crate::clients::home::{Home, Server};
use crate::clients::parts::{Parts, beside, run, text};

/// The suite has the server ask whatever servers ask.
const OPTIONS: [&str; 4] = ["--class", "read=*", "--allow", "elicitation,sampling,roots"];

/// How often each check came to each status: `SCENARIO CHECK STATUS`.
type Checks = BTreeMap<String, i64>;

/// Runs the suite: the checks, and whether all that the revision requires passed.
fn checks(home: &Home, revision: &str, server: &[String]) -> (Checks, String) {
    let mut command = home.parts.program(&home.user(), &home.parts.node());
    command.arg(beside("conformance.mjs")).args([&home.parts.suite(), revision, "--"]).args(server);
    let ran = run(command, "");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let mut lines: Vec<&str> = ran.out.lines().collect();
    let scored = lines.pop().expect("a last line").to_owned();
    let mut checks = Checks::new();
    for line in lines {
        *checks.entry(line.to_owned()).or_default() += 1;
    }
    (checks, scored)
}

/// A check for which the suite waits a moment by its own clock. On a busy machine the fixture's
/// notice comes too late for it, which the suite counts as a warning. Through the gateway it must be
/// a success: only of the fixture alone is the warning taken for one.
const LATE: &str = "sep-2575-server-sends-tools-list-changed-on-subscription";

/// What the file of expected differences says for a revision: `+` is seen through the gateway
/// only, `-` directly only. A line is `REVISION +|- SCENARIO CHECK STATUS`, and above it stands
/// why.
fn expected(revision: &str) -> Vec<String> {
    let file = fs::read_to_string(beside("differences.txt")).expect("the file");
    let mut expected: Vec<String> = file
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.strip_prefix(revision)?.strip_prefix(' '))
        .map(str::to_owned)
        .collect();
    expected.sort();
    expected
}

fn the_same(revision: &str, at_least: usize) {
    let Some(parts) = Parts::find() else { return };
    let home = Home::new(parts);
    let alone = vec![text(&parts.fixture)];
    let (direct, scored) = checks(&home, revision, &alone);
    let on_time = |check: String| match check.strip_suffix(" WARNING") {
        Some(name) if name.ends_with(LATE) => format!("{name} SUCCESS"),
        _ => check,
    };
    let direct: Checks = direct.into_iter().map(|(check, n)| (on_time(check), n)).collect();
    assert_eq!(scored, "scored pass", "the fixture itself meets the revision's requirements");
    let passed = direct.keys().filter(|line| line.ends_with(" SUCCESS")).count();
    assert!(passed >= at_least, "only {passed} different checks passed");

    let server = Server { name: "fixture", command: alone, options: &OPTIONS };
    let line = home.gateway("suite", None, &server);
    let (through, scored) = checks(&home, revision, &line);
    let mut differences = Vec::new();
    for check in direct.keys().chain(through.keys().filter(|check| !direct.contains_key(*check))) {
        let count = |checks: &Checks| checks.get(check).copied().unwrap_or(0);
        match count(&through) - count(&direct) {
            0 => {}
            more if more > 0 => differences.push(format!("+ {check}")),
            _ => differences.push(format!("- {check}")),
        }
    }
    differences.sort();
    let expected = expected(revision);
    assert_eq!(differences, expected, "{scored}; left: through the gateway, right: expected");
    assert_eq!(scored, "scored pass", "no difference is of a check that the revision requires");
    home.verify();
}

#[test]
fn the_newest_revision_is_the_same_through_the_gateway() {
    the_same("2026-07-28", 100);
}

#[test]
fn the_revision_before_is_the_same_through_the_gateway() {
    the_same("2025-11-25", 50);
}
