//! `policy replay`.

use rusqlite::Connection;
use serde_json::{Value, json};

use super::{always, tools, when};
use crate::cli::support::{ECHO, Run, TestHome, run};

const WRITE: &str = r#"{"tool_id":"fs.write","args":{"path":"x","text":"y"}}"#;
const READ: &str = r#"{"tool_id":"fs.read","args":{"path":"x"}}"#;

fn replay(home: &TestHome, against: &str, flags: &[&str]) -> Run {
    run(["policy", "replay", &home.path(), "--against", against].iter().chain(flags))
}

/// A home with two writes, a read and an echo, and one line that is no call.
fn busy() -> TestHome {
    let home = TestHome::new();
    let id = home.worker("a");
    let lines = [WRITE, READ, WRITE, ECHO, "nonsense"].join("\n");
    let results = home.call("a", &id, lines.as_bytes());
    assert_eq!(results.iter().filter(|result| result["status"] == "ok").count(), 4);
    home
}

#[test]
fn the_same_policy_changes_nothing() {
    let home = busy();
    for against in [&home.path(), "preset:standard"] {
        assert_eq!(replay(&home, against, &[]).fine().out, "the same: 4\n");
    }
    let sums = replay(&home, "preset:standard", &["--json"]).fine().one();
    assert_eq!(sums, json!({"same": 4, "changed": {}, "not_asked": {}}));
}

#[test]
fn a_stricter_policy_changes_what_it_forbids() {
    let home = busy();
    let before = home.log().len();
    let run = replay(&home, "preset:read-only", &["--json"]);
    assert_eq!((run.code, &*run.err), (1, ""));
    let mut lines = run.json();
    let sums = lines.pop().unwrap();
    let expected = json!({"same": 2, "changed": {"allow -> deny": 2}, "not_asked": {}});
    assert_eq!(sums, expected);
    assert_eq!(lines.len(), 2);
    let log = home.log();
    for line in &lines {
        let record = &log[usize::try_from(line["record"].as_u64().unwrap()).unwrap()];
        assert_eq!((&record["kind"], &record["tool_id"]), (&json!("intent"), &json!("fs.write")));
        assert_eq!((&line["agent"], &line["tool"]), (&json!("a"), &json!("fs.write")));
        assert_eq!(line["was"]["deciding"], "local-write");
        assert_eq!(line["now"]["verdict"], "deny");
    }
    let text = replay(&home, "preset:read-only", &[]).out;
    assert!(text.contains("allow by local-write -> deny"), "{text}");
    assert!(text.ends_with("allow -> deny: 2\nthe same: 2\n"), "{text}");
    assert_eq!(log.len(), before);
    assert_eq!(home.verify(), 0);
}

/// Arguments are those of then: a policy about paths can be held against a log.
#[test]
fn arguments_are_asked_about() {
    let home = busy();
    let within = |path: &str| {
        tools(&[
            ("fs.write", when("within", "args.path", path)),
            ("fs.read", always()),
            ("echo", always()),
        ])
    };
    let same = home.file("same", &within("workspace/x"));
    assert_eq!(replay(&home, &same, &[]).fine().out, "the same: 4\n");
    let other = home.file("other", &within("workspace/y"));
    assert_eq!(replay(&home, &other, &[]).code, 1);
}

#[test]
fn replay_skips_erased_calls() {
    let home = busy();
    let database = Connection::open(home.beside("home/home.db")).unwrap();
    database.execute_batch("DELETE FROM vault").unwrap();
    drop(database);
    let run = replay(&home, "preset:read-only", &["--json"]);
    assert_eq!((run.code, &*run.err), (5, ""));
    let mut lines = run.json();
    let sums = lines.pop().unwrap();
    assert_eq!(sums, json!({"same": 0, "changed": {}, "not_asked": {"erased": 4}}));
    for line in lines {
        assert_eq!((&line["now"], &line["not_asked"]), (&Value::Null, &json!("erased")));
    }
    let text = replay(&home, "preset:read-only", &[]).out;
    assert!(text.contains("not asked: its arguments were erased or damaged\n"), "{text}");
}

/// A change weighs more than a call that was not asked about, and that more than none.
#[test]
fn replay_of_partly_erased_calls_exits_1_or_5() {
    let home = busy();
    let database = Connection::open(home.beside("home/home.db")).unwrap();
    let erase = "DELETE FROM vault WHERE seq = (SELECT min(seq) FROM vault)";
    assert_eq!(database.execute(erase, []).unwrap(), 1);
    drop(database);
    let changed = replay(&home, "preset:read-only", &["--json"]);
    let sums = changed.json().pop().unwrap();
    assert_eq!((changed.code, &sums["not_asked"]), (1, &json!({"erased": 1})));
    let same = replay(&home, "preset:standard", &["--json"]);
    let sums = same.json().pop().unwrap();
    assert_eq!(sums, json!({"same": 3, "changed": {}, "not_asked": {"erased": 1}}));
    assert_eq!(same.code, 5);
}

#[test]
fn replay_works_while_a_server_has_the_home() {
    let home = TestHome::new();
    let id = home.worker("a");
    let mut holder = home.hold("a", &id);
    assert_eq!(holder.ask(WRITE)["status"], "ok");
    assert_eq!(replay(&home, "preset:standard", &[]).fine().out, "the same: 1\n");
    assert_eq!(replay(&home, "preset:read-only", &[]).code, 1);
    assert_eq!(holder.ask(ECHO)["status"], "ok");
    assert_eq!(holder.end(), 0);
    let nowhere = home.text_beside("nowhere");
    run(["policy", "replay", &nowhere, "--against", "preset:standard"]).failed(4);
    replay(&home, "preset:strict", &[]).failed(2);
    replay(&home, &home.file("bad", "{"), &[]).failed(1);
    assert_eq!(run(["policy", "replay", &home.path()]).code, 2);
}
