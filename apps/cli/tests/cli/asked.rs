//! Asks and their answers where they are looked at: `log show`, `top`.

use serde_json::json;

use crate::cli::approvals::{ask, asking, write};
use crate::cli::support::{reason, run};

/// Where many wait they are put away together, up to the first that does not wait.
#[test]
fn several_are_refused_at_once() {
    let (home, token) = asking();
    let path = home.path();
    let call = |file: &str| home.call("a", &token, write(file, "x").as_bytes()).remove(0);
    let asks = ["a.txt", "b.txt", "c.txt"].map(|file| ask(&call(file)));
    let denied = || home.log().iter().filter(|record| record["kind"] == "approval").count();
    assert_eq!(run(["approvals", "deny", &path]).code, 2);
    run(["approvals", "deny", &path, &asks[0], &asks[1], "--because", "no"]).fine();
    assert_eq!(denied(), 2);
    assert_eq!(run(["approvals", "deny", &path, &asks[2], &asks[0]]).code, 2);
    assert_eq!(denied(), 3);
}

#[test]
fn the_log_names_what_an_approval_answers() {
    let (home, token) = asking();
    let path = home.path();
    let call = |file: &str| home.call("a", &token, write(file, "x").as_bytes()).remove(0);
    let asks = ["a.txt", "b.txt"].map(|file| ask(&call(file)));
    // In another order than they were asked.
    run(["approvals", "deny", &path, &asks[1]]).fine();
    run(["approvals", "approve", &path, &asks[0]]).fine();
    let answers: Vec<_> =
        home.log().into_iter().filter(|record| record["kind"] == "approval").collect();
    let answered = |record: &serde_json::Value| record["answers"].clone();
    let named =
        |ask: &str| json!({"ask": ask.parse::<u64>().unwrap(), "agent": "a", "tool": "fs.write"});
    assert_eq!(answers.len(), 2);
    assert_eq!(answered(&answers[0]), named(&asks[1]));
    assert_eq!(answered(&answers[1]), named(&asks[0]));
    assert_eq!(answers[0]["control"]["says"]["answer"], "deny");
    assert_eq!(answers[0]["control"]["says"]["means"], "command");
    // Also where the log is shown from the answer on.
    let from = answers[1]["seq"].to_string();
    let shown =
        run(["log", "show", &path, "--from", &from, "--limit", "1", "--records"]).fine().out;
    let row = shown.lines().nth(1).unwrap();
    assert!(row.contains(&format!("once by command, to {}", asks[0])), "{row}");
    assert!(row.contains("a  ") && row.contains("fs.write"), "{row}");
    let other: Vec<_> = home.log().into_iter().filter(|record| record["kind"] == "ask").collect();
    assert!(other.iter().all(|record| record.get("answers").is_none()));
}

#[test]
fn top_counts_how_often_a_person_was_asked() {
    let (home, token) = asking();
    let path = home.path();
    let seen = || run(["top", &path, "--once", "--json"]).fine().one();
    let text = || run(["top", &path, "--once"]).fine().out;
    assert_eq!(seen()["asks_last_hour"], 0);
    assert!(!text().contains("asked a person"));
    let call = |file: &str| home.call("a", &token, write(file, "x").as_bytes()).remove(0);
    for file in ["a.txt", "b.txt", "b.txt"] {
        assert_eq!(reason(&call(file)), "asked");
    }
    // A call that waits already asks nobody again.
    assert_eq!(seen()["asks_last_hour"], 2);
    assert!(text().contains("asked a person 2 times in the last hour"));
}
