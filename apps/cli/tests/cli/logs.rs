//! `log`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cli::support::{ECHO, TestHome, is_hash, names, run};

#[test]
fn every_record_is_a_row() {
    let home = TestHome::new();
    let id = home.worker("a");
    home.call("a", &id, format!("{ECHO}\nx\n").as_bytes());
    let log = home.log();
    for (seq, record) in log.iter().enumerate() {
        assert_eq!(record["seq"], seq);
        assert!(is_hash(&record["leaf"]) && is_hash(&record["prev"]));
        if seq > 0 {
            assert_eq!(record["prev"], log[seq - 1]["leaf"]);
        }
    }
    let text = run(["log", "show", &home.path(), "--records"]).fine().out;
    assert_eq!(text.lines().count(), log.len() + 1);
    // A call is one line, and has two records. Opening and closing are no calls.
    let text = run(["log", "show", &home.path()]).fine().out;
    let count = |kind| log.iter().filter(|record| record["kind"] == kind).count();
    let hidden = count("boot") + count("shutdown");
    assert_eq!((count("intent"), text.lines().count()), (1, log.len() - hidden));
    assert_eq!(log.last().unwrap()["kind"], "shutdown");
}

#[test]
fn records_of_calls_hold_every_field() {
    let home = TestHome::new();
    let id = home.worker("a");
    home.call("a", &id, format!("{ECHO}\nx\n").as_bytes());
    let fields = [
        "agent_id",
        "policy_hash",
        "state_snapshot_id",
        "capability_token_id",
        "tool_id",
        "args_hash",
        "result_hash",
        "provenance",
    ];
    let mut seen = BTreeSet::new();
    for record in home.log() {
        let kind = record["kind"].as_str().unwrap().to_owned();
        if ["intent", "outcome", "refusal"].contains(&&*kind) {
            for field in fields {
                assert!(record.as_object().unwrap().contains_key(field), "{kind} lacks {field}");
            }
            seen.insert(kind);
        }
    }
    assert_eq!(seen.len(), 3);
    let outcome = home.log().into_iter().find(|record| record["kind"] == "outcome").unwrap();
    assert_eq!(outcome["status"], "ok");
    assert_eq!(outcome["capability_token_id"], id);
    assert_eq!(outcome["used"]["calls"], 1);
    assert_eq!(outcome["decision"]["verdict"], "allow");
    assert_eq!(outcome["provenance"]["source"], "agent");
}

/// No key stands twice in a line, which parsers would not say.
#[test]
fn no_key_stands_twice() {
    let home = TestHome::new();
    let id = home.worker("a");
    home.call("a", &id, format!("{ECHO}\nx\n").as_bytes());
    run(["token", "revoke", &home.path(), &id]).fine();
    let out = run(["log", "show", &home.path(), "--json"]).fine().out;
    for line in out.lines() {
        let compact: Value = serde_json::from_str(line).unwrap();
        assert_eq!(compact.to_string().len(), line.len(), "{line}");
    }
    let revoke = home.log().into_iter().find(|record| record["kind"] == "revoke").unwrap();
    assert_eq!(revoke["control"]["says"]["token"], id);
}

#[test]
fn a_part_of_the_log_can_be_shown() {
    let home = TestHome::new();
    let log = home.log();
    let seqs = |flags: &[&str]| {
        let path = home.path();
        let args: Vec<&str> =
            ["log", "show", &path, "--json"].into_iter().chain(flags.to_vec()).collect();
        let shown = run(args).fine().json();
        shown.iter().map(|record| record["seq"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(log.len(), 5);
    assert_eq!(seqs(&["--from", "3"]), [3, 4]);
    assert_eq!(seqs(&["--from", "1", "--limit", "2"]), [1, 2]);
    assert_eq!(seqs(&["--last", "2"]), [3, 4]);
    assert_eq!((seqs(&["--last", "0"]), seqs(&["--last", "99"]).len()), (vec![], 5));
    assert_eq!(seqs(&["--limit", "0"]), [0; 0]);
    assert_eq!(seqs(&["--from", "5"]), [0; 0]);
    assert_eq!(seqs(&["--from", "18446744073709551615"]), [0; 0]);
    assert_eq!(run(["log", "show", &home.path(), "--from", "-1"]).code, 2);
}

/// A log that is read in several chunks.
#[test]
fn a_long_log_is_shown_whole() {
    let home = TestHome::new();
    let id = home.worker("a");
    home.call("a", &id, format!("{ECHO}\n").repeat(600).as_bytes());
    let log = home.log();
    assert!(log.len() > 1_200);
    assert!(log.iter().enumerate().all(|(seq, record)| record["seq"] == seq));
    let home_path = home.path();
    let args = ["log", "show", &home_path, "--json", "--from", "10", "--limit", "600"];
    assert_eq!(run(args).fine().json().len(), 600);
}

#[test]
fn looking_writes_nothing() {
    let home = TestHome::new();
    let id = home.worker("a");
    let before = home.log().len();
    for args in [
        &["token", "list", &home.path()][..],
        &["token", "show", &home.path(), &id],
        &["verify", &home.path()],
        &["doctor", &home.path()],
        &["log", "export", &home.path(), "--out", &home.text_beside("out")],
    ] {
        assert_eq!(run(args).code, 0, "{args:?}");
    }
    assert_eq!(home.log().len(), before);
}

#[test]
fn an_export_is_made_once() {
    let home = TestHome::new();
    let out = home.text_beside("out");
    let made = run(["log", "export", &home.path(), "--out", &out, "--json"]).fine().one();
    assert_eq!(made["records"], 5);
    assert_eq!(names(&home.beside("out")), ["objects", "records.cborseq"]);
    let objects = names(&home.beside("out/objects")).len();
    assert_eq!(made["objects"], objects);
    run(["log", "export", &home.path(), "--out", &out]).failed(1);
    let inside = format!("{}/out", home.path());
    run(["log", "export", &home.path(), "--out", &inside]).failed(2);
    assert!(!std::path::Path::new(&inside).exists());
    run(["log", "export", &home.path(), "--out", &home.text_beside("no/where")]).failed(1);
    assert_eq!(run(["verify", &out]).code, 0);
}
