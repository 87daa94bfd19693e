//! `erase`: what the vault kept is gone, from the database and its log, and the records stay.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::support::{Run, Serving, TestHome, run, run_with, syscap};

/// How often a text stands in the database and its log.
pub(crate) fn found(home: &TestHome, text: &str) -> usize {
    let files = ["home.db", "home.db-wal"].map(|name| home.beside("home").join(name));
    let count = |bytes: Vec<u8>| {
        bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
    };
    files.iter().filter_map(|file| fs::read(file).ok()).map(count).sum()
}

fn session(home: &TestHome, token: &str, lines: &[Value]) -> Vec<Value> {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let words = ["call", &home.path(), "--agent", "a", "--token", token];
    run_with(words, lines.join("\n").as_bytes()).json()
}

fn erase(home: &TestHome, records: &[u64], more: &[&str]) -> Run {
    let records: Vec<String> = records.iter().map(u64::to_string).collect();
    let mut words = vec!["erase".to_owned(), home.path(), "--record".to_owned()];
    words.extend(records);
    words.extend(more.iter().map(|&word| word.to_owned()));
    run(words)
}

fn seq(result: &Value, what: &str) -> u64 {
    result["receipt"][what].as_u64().unwrap()
}

/// A token of the agent's, for files and `echo`.
fn token(home: &TestHome) -> String {
    let flags = ["--tool", "fs.write,fs.read,echo", "--write", "workspace", "--read", "workspace"];
    home.token("a", &flags)
}

/// A call's text: in its arguments, in the result of another, referred to, repeated, proposed,
/// refused and asked about.
struct Spread {
    home: TestHome,
    token: String,
    write: u64,
    read: u64,
}

fn spread(marker: &str) -> Spread {
    let home = TestHome::new();
    let token = token(&home);
    let text = format!("before {marker} behind");
    let results = session(
        &home,
        &token,
        &[
            json!({"tool_id": "fs.write", "args": {"path": "f", "text": text}}),
            json!({"tool_id": "fs.read", "args": {"path": "f"}}),
            json!({"tool_id": "echo", "args": {"value": text}, "idempotency_key": "k"}),
            json!({"tool_id": "fs.write", "args": {"path": text, "text": "x", "mode": text}}),
        ],
    );
    let read = seq(&results[1], "outcome_seq");
    let refer = json!({"$ref": {"record": read, "path": ["text"]}});
    session(&home, &token, &[json!({"tool_id": "echo", "args": {"value": refer}})]);
    let fact = format!("goal.topic={}", json!(text));
    let words = ["state", "propose", &home.path(), "--agent", "a", "--token", &token];
    run([&words[..], &[&fact]].concat()).fine();
    Spread { write: seq(&results[0], "intent_seq"), read, home, token }
}

#[test]
fn erased_text_is_in_no_file_of_the_database() {
    for (n, served) in [(0, false), (1, true)] {
        let marker = format!("MARKER-{n}-e3b0c44298fc1c14");
        let Spread { home, token, write, read } = spread(&marker);
        assert!(found(&home, &marker) > 3, "it is there before");
        let serving = served.then(|| Serving::of(&home.path(), &[]));
        let dry = erase(&home, &[write], &["--dry-run", "--json"]).json();
        let copies = dry.iter().filter(|one| one["is"] != "named").count();
        assert!(copies >= 3, "{dry:?}");
        let before = found(&home, &marker);
        // Those alone that are named: the others are listed.
        let alone = erase(&home, &[write], &[]);
        assert_eq!(alone.code, 0, "{}", alone.err);
        assert!(alone.err.contains("--with-copies"), "{}", alone.err);
        let left = found(&home, &marker);
        assert!(left > 0 && left < before, "{left} of {before}");
        // What repeats it and refers to it says so; the log verifies as before.
        let gone = erase(&home, &[read], &["--with-copies", "--because", "a person asked"]);
        assert_eq!((gone.code, &*gone.err), (0, ""));
        assert_eq!(found(&home, &marker), 0, "served: {served}");
        let lines = [
            json!({"tool_id": "echo", "args": {"value": format!("before {marker} behind")},
                   "idempotency_key": "k"}),
            json!({"tool_id": "echo", "args": {"value": {"$ref": {"record": read, "path": []}}}}),
        ];
        let again = session(&home, &token, &lines);
        assert_eq!(again[0]["error"]["reason"], "outcome_erased");
        serving.into_iter().for_each(Serving::stop);
        assert_eq!(home.verify(), 0);
        let export = home.text_beside("export");
        run(["log", "export", &home.path(), "--out", &export]).fine();
        assert!(tree(&home.beside("export")).iter().all(|bytes| !has(bytes, &marker)));
        let log = home.log();
        let redacts: Vec<&Value> = log.iter().filter(|one| one["kind"] == "redact").collect();
        assert_eq!(redacts.len(), 2);
        run(["log", "show", &home.path()]).fine();
    }
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn tree(folder: &std::path::Path) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let entries = entries.map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { tree(&path) } else { vec![fs::read(path).unwrap()] })
        .collect()
}

#[test]
fn record_without_a_row_is_not_erased() {
    let home = TestHome::new();
    let token = token(&home);
    let results = session(&home, &token, &[json!({"tool_id": "echo", "args": {"value": 1}})]);
    let outcome = seq(&results[0], "outcome_seq");
    for records in [&[0][..], &[99_999], &[outcome, 1]] {
        let refused = erase(&home, records, &[]);
        assert_eq!(refused.code, 2, "{}", refused.err);
    }
    assert_eq!(erase(&home, &[], &[]).code, 2);
    erase(&home, &[outcome], &[]).fine();
    assert_eq!(erase(&home, &[outcome], &[]).code, 2, "it is gone");
    assert_eq!(home.log().iter().filter(|one| one["kind"] == "redact").count(), 1);
}

/// Killed at any point: the record and all its rows, or neither.
#[test]
fn a_kill_leaves_all_or_nothing() {
    let Spread { home, write, read, .. } = spread("MARKER-killed-9f86d081884c7d65");
    let mut erased = false;
    for n in 0..10 {
        let records = [write.to_string(), read.to_string()];
        let mut child = syscap()
            .args(["erase", &home.path(), "--record", &records[0], &records[1]])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(n * 6));
        child.kill().unwrap();
        child.wait().unwrap();
        let is_on_record = home.log().iter().any(|one| one["kind"] == "redact");
        let rows = [write, read].map(|seq| {
            let dry = erase(&home, &[seq], &["--dry-run"]);
            dry.code == 0
        });
        assert_eq!(rows, [!is_on_record; 2], "after {} ms", n * 6);
        erased |= is_on_record;
        if erased {
            break;
        }
    }
    assert!(home.verify() == 0 || home.verify() == 11, "open, perhaps, and not tampered with");
}
