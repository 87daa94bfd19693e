//! `log show`: what was done, for somebody who reads it.

use std::{io::Read as _, process::Stdio};

use serde_json::json;

use crate::cli::damage::change_record;
use crate::cli::support::{TestHome, run, syscap, until};

const WRITES: &str =
    r#"{"tool_id": "fs.write", "args": {"path": "notes.txt", "text": "call\nada"}}"#;
const READS: &str = r#"{"tool_id": "fs.read", "args": {"path": "notes.txt"}}"#;
const MISSES: &str = r#"{"tool_id": "fs.read", "args": {"path": "none.txt"}}"#;
const ESCAPES: &str = r#"{"tool_id": "fs.read", "args": {"path": "../x"}}"#;
const UNGRANTED: &str = r#"{"tool_id": "echo", "args": {"value": 1}}"#;

struct World {
    home: TestHome,
    token: String,
}

impl World {
    fn new() -> Self {
        let home = TestHome::new();
        let flags = [
            "--tool",
            "fs.write",
            "--tool",
            "fs.read",
            "--read",
            "workspace",
            "--write",
            "workspace",
        ];
        let token = home.token("a", &flags);
        Self { home, token }
    }

    fn call(&self, lines: &[&str]) {
        self.home.call("a", &self.token, lines.join("\n").as_bytes());
    }

    /// The lines of `log show`, without the heading.
    fn show(&self, flags: &[&str]) -> Vec<String> {
        let path = self.home.path();
        let shown = run([&["log", "show", &path], flags].concat()).fine().out;
        shown.lines().skip(1).map(str::to_owned).collect()
    }

    /// The numbers that the lines begin with.
    fn seqs(&self, flags: &[&str]) -> Vec<u64> {
        let first = |line: &String| line.split_whitespace().next().unwrap().parse().unwrap();
        self.show(flags).iter().map(first).collect()
    }

    /// The numbers of all records of a kind.
    fn of_kind(&self, kind: &str) -> Vec<u64> {
        let log = self.home.log().into_iter().filter(|record| record["kind"] == kind);
        log.map(|record| record["seq"].as_u64().unwrap()).collect()
    }
}

/// What a line has behind the agent's name.
fn what(line: &str) -> &str {
    line.split_once("a                 ").unwrap().1
}

#[test]
fn a_line_says_what_was_called_and_what_came_of_it() {
    let world = World::new();
    world.call(&[WRITES, READS, MISSES, ESCAPES, UNGRANTED, "x"]);
    let lines = world.show(&["--agent", "a"]);
    let calls: Vec<&str> = lines.iter().map(|l| what(l)).filter(|l| l.contains(" -> ")).collect();
    assert_eq!(
        calls,
        [
            concat!(
                r#"fs.write(path: "notes.txt", text: "call\nada") -> ok: "#,
                r#"{"created":true,"folders":0,"size_bytes":8}"#
            ),
            r#"fs.read(path: "notes.txt") -> ok: call ada"#,
            concat!(
                r#"fs.read(path: "none.txt") -> failed: not_found, field: path, "#,
                "got: no such file or directory"
            ),
            "fs.read(path: \"../x\") -> refused: bad_path, field: path, got: ../x, \
             allowed: below workspace",
            "echo -> refused: not_granted, field: tool_id, got: echo, allowed: fs.read, fs.write",
            "no tool -> refused: malformed, field: envelope, \
             got: byte 0: a character can't stand here: x, allowed: one JSON object",
        ]
    );
    // What is the vault's can be left out; the rest stands in the log.
    let lines = world.show(&["--redacted", "--tool", "fs.*"]);
    let calls: Vec<&str> = lines.iter().map(|line| what(line)).collect();
    assert_eq!(
        calls,
        [
            "fs.write -> ok",
            "fs.read -> ok",
            "fs.read -> failed: not_found",
            "fs.read -> refused: bad_path"
        ]
    );
}

/// What people did has a name: that of the role that signed it. No agent has such a one.
#[test]
fn log_names_operators_by_role() {
    let world = World::new();
    let path = world.home.path();
    let mine = ["--agent", "a"];
    run([&["freeze", &path], &mine[..]].concat()).fine();
    run([&["thaw", &path], &mine[..]].concat()).fine();
    run(["freeze", &path, "--all"]).fine();
    run(["revoke", &path, &world.token]).fine();
    run(["policy", "set", &path, "preset:read-only"]).fine();
    run(["credits", "add", &path, "a", "2"]).fine();
    let lines = world.show(&[]);
    let said = |line: &String| {
        let behind = line[7 + 2 + 24 + 2..].to_owned();
        let (who, what) = behind.split_at(16);
        (who.trim().to_owned(), what.trim().to_owned())
    };
    let said: Vec<(String, String)> = lines.iter().map(said).collect();
    let has = |who: &str, begins: &str| {
        assert!(said.iter().any(|(w, what)| w == who && what.starts_with(begins)), "{said:#?}");
    };
    has("(revoker)", "froze agent a");
    has("(signed)", "ended the freeze of agent a");
    has("(revoker)", "froze every call");
    has("(revoker)", &format!("revoked token {}", &world.token[..12]));
    has("(policy)", "in force from here on: policy ");
    has("(operator)", "tools were put on record");
    has("a", "was given credits_micro +");
    // The kernel's own acts are nobody's.
    // Opening and closing are records of their own, but no lines.
    assert!(!said.iter().any(|(_, what)| what.contains("was opened")), "{said:#?}");
    has("", "the home was made");
    let freeze = world.of_kind("freeze")[0].to_string();
    let whole = run(["log", "show", &path, &freeze]).fine().out;
    assert!(whole.contains("(revoker)") && whole.contains("froze agent a"), "{whole}");
}

#[test]
fn lines_are_chosen() {
    let world = World::new();
    let other = world.home.worker("b");
    world.call(&[WRITES, READS, ESCAPES, UNGRANTED]);
    world.home.call("b", &other, READS.as_bytes());
    let (outcomes, refusals) = (world.of_kind("outcome"), world.of_kind("refusal"));
    assert_eq!(world.seqs(&["--refused"]), refusals);
    assert_eq!(world.seqs(&["--refused", "--last", "1"]), refusals[refusals.len() - 1..]);
    assert_eq!(world.seqs(&["--tool", "fs.write"]), outcomes[..1]);
    assert_eq!(world.seqs(&["--tool", "fs.*", "--agent", "b", "--refused"]), refusals[2..]);
    assert_eq!(world.seqs(&["--tool", "*", "--limit", "2"]), outcomes[..2]);
    assert_eq!(world.seqs(&["--tool", "fs.*", "--last", "99"]).len(), 4);
    // A refused call has its tool's class, where it has a tool.
    assert_eq!(world.seqs(&["--class", "local_write"]), outcomes[..1]);
    assert_eq!(world.seqs(&["--class", "read"]), [outcomes[1], refusals[0], outcomes[2]]);
    let both = ["--class", "read", "--class", "local_write", "--refused"];
    assert_eq!(world.seqs(&both), refusals[..1]);
    assert_eq!(world.seqs(&["--class", "external_write"]), [0_u64; 0]);
    assert_eq!(world.seqs(&["--agent", "nobody"]), [0_u64; 0]);
    assert_eq!(world.seqs(&["--since", "1d"]), world.seqs(&[]));
    for bad in [["--tool", "fs*"], ["--tool", ".*"], ["--since", "now"], ["--agent", "A B"]] {
        let path = world.home.path();
        assert_eq!(run([&["log", "show", &path], &bad[..]].concat()).code, 2, "{bad:?}");
    }
    // The same for machines, who get records.
    let path = world.home.path();
    let args = ["log", "show", &path, "--json", "--tool", "fs.write"];
    let kinds = run(args).fine().json().into_iter().map(|record| record["kind"].clone());
    assert_eq!(kinds.collect::<Vec<_>>(), [json!("intent"), json!("outcome")]);
}

/// Of what is a day old nothing is shown: the clock of the kernel says how old it is.
#[test]
fn log_since_leaves_older_records_out() {
    let world = World::new();
    world.call(&[WRITES]);
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    world.call(&[READS]);
    let young = world.seqs(&["--since", "1s", "--tool", "fs.*"]);
    assert!(young.len() <= 1 && !young.contains(&world.of_kind("outcome")[0]), "{young:?}");
}

#[test]
fn one_record_is_shown_whole() {
    let world = World::new();
    world.call(&[WRITES, READS, MISSES]);
    let path = world.home.path();
    let (intents, outcomes) = (world.of_kind("intent"), world.of_kind("outcome"));
    let show = |seq: u64, flags: &[&str]| {
        let seq = seq.to_string();
        run([&["log", "show", &path, &seq], flags].concat()).fine()
    };
    let text = show(outcomes[1], &[]).out;
    for line in [
        "kind         outcome",
        "tool         fs.read",
        "class        read",
        "policy said  allow by read",
        "kept to by   openat2",
        "  path: notes.txt",
        "  | call",
        "  | ada",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
    }
    // By its intent it is the same call.
    assert_eq!(show(intents[1], &[]).out, text);
    let text = show(outcomes[2], &[]).out;
    assert!(text.contains("\nfailed       not_found (701): There is no such file"), "{text}");
    let redacted = show(outcomes[1], &["--redacted"]).out;
    assert!(!redacted.contains("notes.txt") && redacted.contains("class        read"));
    let whole = show(outcomes[0], &["--json"]).one();
    assert_eq!(whole["seq"], outcomes[0]);
    assert_eq!(whole["args"], json!({"path": "notes.txt", "text": "call\nada"}));
    assert_eq!(whole["delivered"]["size_bytes"], 8);
    let redacted = show(outcomes[0], &["--json", "--redacted"]).one();
    assert!(redacted.get("args").is_none() && redacted.get("delivered").is_none());
    // An event of the operator's.
    assert!(show(0, &[]).out.contains("what         the home was made"));
    for none in ["999", "18446744073709551615"] {
        run(["log", "show", &path, none]).failed(2);
    }
    assert_eq!(run(["log", "show", &path, "1", "--last", "2"]).code, 2);
}

/// What a model wrote, or a file holds, moves no cursor and turns no line around.
#[test]
fn log_lines_never_act_on_the_terminal() {
    let world = World::new();
    let hostile =
        r#"{"tool_id": "fs.write", "args": {"path": "n.txt", "text": "\u001b[2Jx\u202ey\u200b"}}"#;
    world.call(&[hostile, &READS.replace("notes", "n")]);
    let path = world.home.path();
    let seq = world.of_kind("outcome")[1].to_string();
    for args in [vec!["log", "show", &path], vec!["log", "show", &path, &seq]] {
        let shown = run(args).fine().out;
        let hidden = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{200b}".contains(c);
        assert!(!shown.contains(hidden) && shown.contains("\\u001b[2Jx\\u202ey"), "{shown}");
    }
}

/// What the vault has otherwise than the log commits to is not shown, and said; what was erased
/// is told from it.
#[test]
fn log_hides_and_reports_altered_arguments() {
    let world = World::new();
    world.call(&[WRITES, READS]);
    let (intents, outcomes) = (world.of_kind("intent"), world.of_kind("outcome"));
    let base = rusqlite::Connection::open(world.home.beside("home/home.db")).unwrap();
    let row = |seq: u64| i64::try_from(seq).unwrap();
    let swap = "UPDATE vault SET row = (SELECT row FROM vault WHERE seq = ?1) WHERE seq = ?2";
    assert_eq!(base.execute(swap, [outcomes[0], outcomes[1]].map(row)).unwrap(), 1);
    assert_eq!(base.execute("DELETE FROM vault WHERE seq = ?1", [row(intents[0])]).unwrap(), 1);
    drop(base);
    let path = world.home.path();
    let shown = run(["log", "show", &path, "--tool", "fs.*"]);
    assert_eq!(shown.code, 1, "{}", shown.err);
    let lines: Vec<&str> = shown.out.lines().skip(1).map(what).collect();
    assert_eq!(
        lines,
        [
            "fs.write(arguments erased) -> ok (result erased)",
            r#"fs.read(path: "notes.txt") -> ok (result altered)"#,
        ]
    );
    let one = run(["log", "show", &path, &outcomes[1].to_string()]);
    assert_eq!(one.code, 1);
    assert!(one.out.ends_with("\nresult       altered\n"), "{}", one.out);
    run(["log", "show", &path, &outcomes[0].to_string()]).fine();
    // For whom it is left out, nothing is looked at.
    run(["log", "show", &path, "--redacted"]).fine();
}

/// Lines come as they are written.
#[test]
fn a_log_is_followed() {
    let world = World::new();
    world.call(&[WRITES]);
    let path = world.home.path();
    let mut command = syscap();
    let args = ["log", "show", &path, "--follow", "--tool", "fs.*", "--last", "5"];
    let mut follows = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = follows.stdout.take().unwrap();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let theirs = std::sync::Arc::clone(&seen);
    let reads = std::thread::spawn(move || {
        let mut part = [0; 1_024];
        while let Ok(count @ 1..) = out.read(&mut part) {
            theirs.lock().unwrap().push_str(std::str::from_utf8(&part[..count]).unwrap());
        }
    });
    let has = |what: &str| seen.lock().unwrap().contains(what);
    until("what was there", || has("fs.write("));
    assert!(!has("fs.read("));
    world.call(&[READS]);
    until("what was written later", || has("fs.read("));
    follows.kill().unwrap();
    follows.wait().unwrap();
    reads.join().unwrap();
    assert_eq!(seen.lock().unwrap().matches("fs.write(").count(), 1);
}

/// Lines stand in the order of their numbers, also that of a call without an outcome.
#[test]
fn open_call_stands_before_later_lines() {
    let world = World::new();
    world.call(&[WRITES, READS, READS]);
    let (intent, outcomes) = (world.of_kind("intent")[1], world.of_kind("outcome"));
    change_record(&world.home, &format!("DELETE FROM records WHERE seq = {}", outcomes[1]));
    for flags in [&["--tool", "fs.read"][..], &["--tool", "fs.read", "--last", "2"]] {
        assert_eq!(world.seqs(flags), [intent, outcomes[2]], "{flags:?}");
    }
    assert_eq!(world.seqs(&["--tool", "fs.read", "--last", "1"]), [outcomes[2]]);
}

/// A call of which no outcome is on record does not go missing.
#[test]
fn log_shows_a_call_without_outcome() {
    let world = World::new();
    world.call(&[WRITES, READS]);
    let outcome = *world.of_kind("outcome").last().unwrap();
    // A log that ends before the last outcome, as a crash leaves it.
    change_record(&world.home, &format!("DELETE FROM records WHERE seq >= {outcome}"));
    let lines = world.show(&["--tool", "fs.read"]);
    let calls: Vec<&str> = lines.iter().map(|line| what(line)).collect();
    assert_eq!(calls, [r#"fs.read(path: "notes.txt") -> running, or interrupted"#]);
}
