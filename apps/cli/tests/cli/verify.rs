//! `verify`: every exit code, by what was done to the log.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use syscap::format::Record;

use crate::cli::support::{ECHO, TestHome, run};

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

/// What was cut off the end is found by the head that was noted, and by nothing else.
#[test]
fn cut_is_found_by_the_head_that_was_noted() {
    let home = TestHome::new();
    let (path, id) = (home.path(), home.worker("a"));
    let of_head = |found: &[Value]| {
        let head = found.iter().find(|one| one["what"] == "head").unwrap();
        head["level"].as_str().unwrap().to_owned()
    };
    assert_eq!(of_head(&run(["doctor", &path, "--json"]).json()), "note");
    home.call("a", &id, format!("{ECHO}\n").as_bytes());
    let copy = home.text_beside("copy");
    let copied = Command::new("cp").args(["-a", &path, &copy]).status().unwrap();
    assert!(copied.success());
    home.call("a", &id, format!("{ECHO}\n").as_bytes());
    let noted = run(["log", "head", &path, "--json"]).fine().one();
    let head = noted["head"].as_str().unwrap();
    assert_eq!(run(["log", "head", &path]).fine().out.trim_end(), head);
    assert_eq!(of_head(&run(["doctor", &path, "--json"]).json()), "ok");
    let known = run(["verify", &path, "--head", head, "--json"]).fine().one();
    assert_eq!(known["noted_seq"], noted["seq"]);
    assert_eq!(run(["verify", &copy]).code, 0);
    assert_eq!(run(["verify", &copy, "--head", head]).code, 10);
    let other = TestHome::new();
    assert_eq!(run(["verify", &other.path(), "--head", head]).code, 10);
    // An older database that is put back is no later one.
    let put_back = r#"rm -f "$1"/home.db* && cp -a "$2"/home.db* "$1""#;
    let put_back = Command::new("sh").args(["-ec", put_back, "sh", &path, &copy]).status().unwrap();
    assert!(put_back.success());
    let found = run(["doctor", &path, "--json"]).json();
    assert!(found.iter().any(|one| one["what"] == "log" && one["level"] == "bad"), "{found:?}");
    for bad in ["", "1", "1:ab", ":", "-1:00", &head.to_uppercase(), &format!("{head}0")] {
        assert_eq!(run(["verify", &path, "--head", bad]).code, 2, "{bad}");
    }
}

/// The vault is no part of the log: what it has is held against the log where that is asked for.
/// What was erased is counted, and what is otherwise is named and ends with 10.
#[test]
fn the_vaults_rows_are_held_against_their_records() {
    let home = TestHome::new();
    let (path, id) = (home.path(), home.worker("a"));
    let write = r#"{"tool_id":"fs.write","args":{"path":"a.txt","text":"one"}}"#;
    let escapes = r#"{"tool_id":"fs.read","args":{"path":"../x"}}"#;
    home.call("a", &id, format!("{ECHO}\n{write}\n{escapes}\n").as_bytes());
    run(["revoke", &path, &id, "--because", "enough"]).fine();
    let whole = run(["verify", &path, "--vault", "--json"]).fine().one();
    // Two calls, a refusal with its arguments, and why the token was revoked.
    assert_eq!(whole["vault"]["whole"], 7, "{whole}");
    assert_eq!((&whole["vault"]["absent"], &whole["vault"]["altered"]), (&json!(0), &json!([])));
    assert_eq!(run(["verify", &path, "--json"]).fine().one()["vault"], json!(null));
    let log = home.log();
    let nth = |kind: &str, n: usize| {
        let all = log.iter().filter(|record| record["kind"] == kind);
        all.map(|record| record["seq"].as_i64().unwrap()).nth(n).unwrap()
    };
    let base = rusqlite::Connection::open(home.beside("home/home.db")).unwrap();
    let swap = "UPDATE vault SET row = (SELECT row FROM vault WHERE seq = ?1) WHERE seq = ?2";
    let broken = "UPDATE vault SET row = x'00' WHERE seq = ?1";
    let mine = "INSERT INTO vault SELECT ?2, row FROM vault WHERE seq = ?1";
    let (first, second) = (nth("outcome", 0), nth("outcome", 1));
    assert_eq!(base.execute(swap, [first, second]), Ok(1));
    assert_eq!(base.execute(broken, [nth("revoke", 0)]), Ok(1));
    assert_eq!(base.execute(mine, [first, nth("session", 0)]), Ok(1));
    assert_eq!(base.execute("DELETE FROM vault WHERE seq = ?1", [nth("refusal", 0)]), Ok(1));
    drop(base);
    let told = run(["verify", &path, "--vault", "--json"]);
    assert_eq!(told.code, 10);
    let told = told.one();
    assert_eq!((&told["verdict"], &told["findings_count"]), (&json!("tampered"), &json!(0)));
    let part = |kind: &str, n, part: &str| json!({"seq": nth(kind, n), "part": part});
    let mut wanted =
        [part("outcome", 1, "result"), part("revoke", 0, "row"), part("session", 0, "row")];
    wanted.sort_by_key(|one| one["seq"].as_i64());
    assert_eq!(told["vault"]["altered"], json!(wanted));
    assert_eq!(told["vault"]["absent"], 2);
    let text = run(["verify", &path, "--vault"]).out;
    assert!(text.starts_with("tampered, "), "{text}");
    let line = format!("altered  record {second}: its result: not what it commits to");
    assert!(text.lines().any(|said| said == line), "{text}");
    // The log alone is sound, and says nothing of it.
    assert_eq!(home.verify(), 0);
    let out = home.text_beside("out");
    run(["log", "export", &path, "--out", &out]).fine();
    run(["verify", &out, "--vault"]).failed(2);
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
        // The first line has the first fault, the others are listed where they are wanted.
        let faults = |words: &[&str]| {
            let ran = run(["verify", &out].iter().chain(words));
            assert_eq!(ran.code, 10, "byte {at}");
            ran.out.lines().filter(|line| line.starts_with("fault ")).count()
        };
        let found = run(["verify", &out, "--json"]).one()["findings"].as_array().unwrap().len();
        assert_eq!((faults(&[]), faults(&["--all"])), (0, found), "byte {at}");
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

/// A record that newer software wrote is no tampering; what was changed before it is.
#[test]
fn record_of_a_later_version_is_13_and_a_fault_before_it_10() {
    let home = TestHome::new();
    let id = home.worker("a");
    home.call("a", &id, ECHO.as_bytes());
    let out = home.text_beside("out");
    run(["log", "export", &home.path(), "--out", &out]).fine();
    let file = home.beside("out/records.cborseq");
    let mut bytes = fs::read(&file).unwrap();
    let last = (0..bytes.len()).rev().find(|at| Record::decode(&bytes[*at..]).is_ok()).unwrap();
    assert_eq!(bytes[last + 1..last + 3], [0, 2], "its version");
    bytes[last + 2] = 3;
    fs::write(&file, &bytes).unwrap();
    let newer = run(["verify", &out, "--json"]);
    assert_eq!(newer.code, 13, "{}", newer.err);
    let seq = u64::try_from(home.log().len() - 1).unwrap();
    let report = newer.one();
    assert_eq!((&report["verdict"], &report["records"]), (&json!("newer"), &json!(seq)));
    // Before what is not anchored, after what was changed.
    assert_eq!(run(["verify", &out, "--require-anchor"]).code, 13);
    bytes[last / 2] ^= 1;
    fs::write(&file, &bytes).unwrap();
    assert_eq!(run(["verify", &out]).code, 10);
}
