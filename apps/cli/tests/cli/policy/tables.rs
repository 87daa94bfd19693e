//! `policy test`.

use serde_json::{Value, json};

use super::{tools, when};
use crate::cli::support::{Run, TestHome, run};

fn case(name: &str, agent: &str, verdict: &str) -> Value {
    let given = json!({"call.tool": "echo", "call.effect": "pure", "call.agent": agent});
    json!({"name": name, "given": given, "verdict": verdict})
}

fn table(cases: &[Value]) -> String {
    json!({"v": 1, "cases": cases}).to_string()
}

/// A home to have files beside, and a document: `echo` for the team.
fn team() -> (TestHome, String) {
    let home = TestHome::new();
    let text = tools(&[("echo", when("within", "call.agent", "team"))]);
    let file = home.file("team.json", &text);
    (home, file)
}

fn test(document: &str, words: &[&str]) -> Run {
    run(["policy", "test", document].iter().chain(words))
}

#[test]
fn presets_pass_their_own_tables() {
    for name in ["standard", "read-only", "coder", "researcher", "mailer"] {
        let target = format!("preset:{name}");
        let text = test(&target, &[]).fine().out;
        assert!(text.lines().next().unwrap().ends_with(" passed, 0 failed"), "{text}");
        let report = test(&target, &["--json", "--mutants"]).fine().one();
        assert_eq!(report["failures"], json!([]));
        assert!(report["cases"].as_u64().unwrap() > 0);
        let permille = report["mutation"]["permille"].as_u64().unwrap();
        assert!(permille <= 1_000, "{permille}");
        // It is said of what is asked only.
        assert_eq!(test(&target, &["--json"]).fine().one()["mutation"], Value::Null);
    }
}

#[test]
fn a_case_that_fails_is_1_and_named() {
    let (home, team) = team();
    let right = [case("member", "team/a", "allow"), case("guest", "guest", "deny")];
    let file = home.file("right", &table(&right));
    assert_eq!(
        test(&team, &[&file]).fine().out.lines().next(),
        Some("2 cases, 2 passed, 0 failed")
    );
    let mut wrong = right.clone();
    wrong[1]["verdict"] = json!("ask");
    wrong[1]["deciding"] = json!(null);
    wrong[1]["name"] = json!("gu\u{1b}est");
    let file = home.file("wrong", &table(&wrong));
    let run = test(&team, &[&file]);
    assert_eq!((run.code, &*run.err), (1, ""));
    let line = "failed gu\\u001best: expected ask by default; got deny by allow.echo";
    assert!(run.out.lines().any(|shown| shown == line), "{}", run.out);
    let report = test(&team, &[&file, "--json"]);
    assert_eq!(report.code, 1);
    let failure = &report.one()["failures"][0];
    assert_eq!(failure["expected"], json!({"verdict": "ask", "deciding": null}));
    assert_eq!(failure["got"]["verdict"], "deny");
    // A preset is held to a table that is named, not to its own.
    assert_eq!(test("preset:standard", &[&file]).code, 1);
}

#[test]
fn coverage_is_asked_for() {
    let (home, team) = team();
    let half = home.file("half", &table(&[case("member", "team/a", "allow")]));
    let text = test(&team, &[&half]).fine().out;
    let line = "not covered allow.echo: test 0, of call.agent, always held";
    assert!(text.lines().any(|shown| shown == line), "{text}");
    let run = test(&team, &[&half, "--coverage"]);
    assert_eq!((run.code, &run.out, &*run.err), (1, &text, ""));
    assert_eq!(test(&team, &[&half, "--json"]).fine().one()["covered"], false);
    let whole = [case("member", "team/a", "allow"), case("guest", "guest", "deny")];
    let whole = home.file("whole", &table(&whole));
    test(&team, &[&whole, "--coverage"]).fine();
    let report = test(&team, &[&whole, "--coverage", "--json"]).fine().one();
    assert_eq!(report["covered"], true);
    assert_eq!(report["coverage"][0]["tests"][0]["attribute"], "call.agent");
    // Of a constraint that is about other calls nothing was seen.
    let other = home.file("other", &table(&[]));
    assert_eq!(test(&team, &[&other, "--coverage"]).code, 1);
    test(&team, &[&other]).fine();
}

#[test]
fn mutants_that_live_lower_the_score() {
    let (home, team) = team();
    let half = home.file("half", &table(&[case("member", "team/a", "allow")]));
    let text = test(&team, &[&half, "--mutants"]).fine().out;
    assert!(text.contains("\nscore ") && text.contains("\nnot noticed allow.echo: "), "{text}");
    let report = test(&team, &[&half, "--mutants", "--json"]).fine().one();
    let permille = report["mutation"]["permille"].as_u64().unwrap();
    assert!(0 < permille && permille < 1_000, "{report}");
    assert_ne!(report["mutation"]["survivors"], json!([]));
    let percent = permille / 10;
    let least = |percent: u64| test(&team, &[&half, "--min-score", &percent.to_string()]).code;
    assert_eq!((least(0), least(percent), least(percent + 1), least(100)), (0, 0, 1, 1));
    assert_eq!((least(101)), 2);
    assert_eq!(test(&team, &[&half, "--min-score", "-1"]).code, 2);
}

#[test]
fn tables_that_are_none() {
    let (home, team) = team();
    test(&team, &[]).failed(2);
    test(&team, &[&home.text_beside("missing")]).failed(1);
    test(&home.path(), &[]).failed(2);
    let good = table(&[case("member", "team/a", "allow")]);
    for (right, wrong) in [
        ("\"cases\"", "\"case\""),
        ("\"v\":1", "\"v\":2"),
        ("call.agent", "call.agnet"),
        ("\"allow\"", "\"alow\""),
        ("{", "["),
    ] {
        let changed = good.replacen(right, wrong, 1);
        assert_ne!(changed, good);
        test(&team, &[&home.file("bad", &changed)]).failed(1);
    }
    let line = test(&team, &[&home.file("bad", &good.replace("alow", "x").replace("team/a", "/"))]);
    assert!(line.failed(1).err.contains("cases[0]"));
    for text in ["{\n x", "#\n x", "[\n x"] {
        let line = test(&team, &[&home.file("bad", text)]).failed(1).err;
        let place = if text.starts_with('#') { "1:1: " } else { "2:2: " };
        assert!(line.contains(&format!(": {place}this is not JSON")), "{line}");
    }
    let bad = home.file("unsound", "{\"v\": 1}");
    test(&bad, &[&home.file("good", &good)]).failed(1);
}
