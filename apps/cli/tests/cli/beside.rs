//! A home that a process holds.

use std::fs;

use crate::support::{ECHO, TestHome, run};

#[test]
fn a_held_home_can_be_looked_at_and_not_opened() {
    let home = TestHome::new();
    let id = home.worker("a");
    let mut holder = home.hold("a", &id);
    let answer = holder.ask(ECHO);
    let path = home.path();
    run(["token", "issue", &path, "--agent", "a", "--tool", "echo"]).failed(4);
    run(["token", "revoke", &path, &id]).failed(4);
    home.call_run("a", &id, ECHO.as_bytes()).failed(4);
    let log = home.log();
    assert_eq!(log.last().unwrap()["leaf"], answer["receipt"]["outcome_leaf"]);
    let report = run(["verify", &path, "--json"]).fine().one();
    assert_eq!((&report["verdict"], &report["end"]), (&"sound".into(), &"live".into()));
    let shown = run(["token", "show", &path, &id, "--json"]).fine().one();
    assert_eq!(shown["budget"]["calls"]["used"], 1);
    assert_eq!(run(["token", "list", &path]).fine().out.lines().count(), 1);
    assert_eq!(run(["doctor", &path]).code, 0);
    let out = home.text_beside("out");
    run(["log", "export", &path, "--out", &out]).fine();
    // An export of a log that goes on has no end.
    assert_eq!(run(["verify", &out]).code, 11);
    assert_eq!(holder.ask(ECHO)["status"], "ok");
    assert_eq!(holder.end(), 0);
    assert_eq!(run(["verify", &path, "--json"]).fine().one()["end"], "clean");
    run(["token", "issue", &path, "--agent", "a", "--tool", "echo"]).fine();
}

#[test]
fn a_process_that_is_killed_leaves_an_unclean_end() {
    let home = TestHome::new();
    let id = home.worker("a");
    let mut holder = home.hold("a", &id);
    let write = r#"{"tool_id":"fs.write","args":{"path":"x","text":"kept"}}"#;
    assert_eq!(holder.ask(write)["status"], "ok");
    holder.child.kill().unwrap();
    holder.child.wait().unwrap();
    let run_verify = run(["verify", &home.path(), "--json"]);
    assert_eq!(run_verify.code, 11);
    assert_eq!(run_verify.one()["end"], "unclean");
    assert_eq!(run(["doctor", &home.path()]).code, 0);
    assert_eq!(fs::read_to_string(home.workspace("a").join("x")).unwrap(), "kept");
    // The next run closes what was left, and its log is sound.
    assert_eq!(home.call("a", &id, ECHO.as_bytes())[0]["status"], "ok");
    assert_eq!(home.verify(), 0);
    assert_eq!(run(["verify", &home.path(), "--require-anchor"]).code, 12);
}

/// A writer that is killed again and again loses no answer that it gave.
#[test]
fn every_answer_is_in_the_log() {
    let home = TestHome::new();
    let id = home.worker("a");
    let mut leaves = Vec::new();
    for round in 0..5 {
        let mut holder = home.hold("a", &id);
        for _ in 0..=round {
            leaves.push(holder.ask(ECHO)["receipt"]["outcome_leaf"].clone());
        }
        holder.child.kill().unwrap();
        holder.child.wait().unwrap();
    }
    let log = home.log();
    for leaf in leaves {
        assert!(log.iter().any(|record| record["leaf"] == leaf));
    }
    assert_eq!(home.verify(), 11);
}
