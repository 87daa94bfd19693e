//! Who is asked for a passphrase, who is not, and what is said to those who can't be.

use std::fs;

use serde_json::Value;

use crate::cli::support::{ECHO, Serving, TestHome, run, run_with};
use crate::cli::terminal::{self, Person, sealed};

/// Which keys in a home are sealed.
fn seals(home: &str) -> Vec<(String, bool)> {
    let listed = run(["keys", "list", home, "--json"]).fine().json();
    let sealed = |use_: &Value| match use_["keys"].as_array() {
        Some(keys) => keys[0]["sealed"].as_bool().unwrap(),
        None => use_["sealed"].as_bool().unwrap(),
    };
    listed.iter().map(|one| (one["use"].as_str().unwrap().to_owned(), sealed(one))).collect()
}

fn levels(home: &str, what: &str) -> Vec<String> {
    let findings = run(["doctor", home, "--json"]).json();
    let of = findings.iter().filter(|finding| finding["what"] == what);
    of.map(|finding| finding["level"].as_str().unwrap().to_owned()).collect()
}

/// Without a terminal nothing is asked and nothing sealed, which is said; with --no-passphrase it
/// need not be said.
#[test]
fn without_a_terminal_nothing_is_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let told = run(["init", &at("told")]);
    assert_eq!((told.code, told.err.lines().count()), (0, 1), "{}", told.err);
    assert!(told.err.contains("not sealed"), "{}", told.err);
    let silent = run(["init", &at("silent"), "--no-passphrase", "--json"]).fine().one();
    assert_eq!(silent["sealed"], false);
    for home in ["told", "silent"] {
        assert!(seals(&at(home)).iter().all(|(_, sealed)| !sealed));
        assert_eq!(levels(&at(home), "sealed"), ["note"]);
        run(["policy", "set", &at(home), "preset:read-only"]).fine();
    }
}

/// At a terminal a passphrase is asked for, twice, and never shown; nothing is none.
#[test]
fn a_person_is_asked_twice() {
    if !terminal::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut person = Person::runs(["init", &at("home"), "--json"]);
    person.sees("(empty for no passphrase): ");
    assert!(!person.echoes());
    person.types("secret").sees("again: ").types("secrets");
    person.sees("do not match").sees("(empty for no passphrase): ").types("secret");
    person.sees("again: ").types("secret");
    let made: Value = serde_json::from_str(person.end().fine().out.trim_end()).unwrap();
    assert_eq!(made["sealed"], true);
    for (name, sealed) in seals(&at("home")) {
        assert_eq!(sealed, !["issuer", "revoker"].contains(&&*name), "{name}");
    }
    assert_eq!(levels(&at("home"), "sealed"), ["ok"]);
    let mut person = Person::runs(["init", &at("empty")]);
    person.sees("(empty for no passphrase): ").types("");
    person.end().fine();
    assert!(seals(&at("empty")).iter().all(|(_, sealed)| !sealed));
    let mut person = Person::runs(["init", &at("never")]);
    for _ in 0..3 {
        person.sees("(empty for no passphrase): ").types("a").sees("again: ").types("b");
    }
    assert_eq!(person.end().code, Some(2));
    assert!(!folder.path().join("never").exists());
}

/// What is too long to seal anything leaves nothing open: it is asked again.
#[test]
fn a_passphrase_that_is_too_long_is_not_none() {
    if !terminal::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home").to_str().unwrap().to_owned();
    let mut person = Person::runs(["init", &home]);
    person.sees("(empty for no passphrase): ").types(&"a".repeat(1_025));
    person.sees("again: ").types(&"b".repeat(1_100));
    person.sees("too long").sees("(empty for no passphrase): ").types("secret");
    person.sees("again: ").types("secret");
    person.end().fine();
    assert_eq!(levels(&home, "sealed"), ["ok"]);
}

/// Whoever gives up at the prompt leaves the terminal as it was, and nothing made.
#[test]
fn an_interrupt_restores_the_echo() {
    if !terminal::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home").to_str().unwrap().to_owned();
    let mut person = Person::runs(["init", &home]);
    person.sees("(empty for no passphrase): ");
    assert!(!person.echoes());
    person.press(b"half of it\x03");
    let told = person.end().hides("half of it");
    assert_eq!(told.code, None, "the signal ended it");
    assert!(person.echoes());
    assert!(!folder.path().join("home").exists());
}

/// Machines go on without anybody: with a home that nobody holds, and with one that is held. What
/// a person must sign fails at once, and says which key it is.
#[test]
fn without_a_person_only_people_s_work_stops() {
    if !terminal::is_there() {
        return;
    }
    let home = TestHome { folder: host_support::scratch() };
    sealed(&home.path(), "secret");
    let path = home.path();
    let works = || {
        let token = home.worker("a");
        assert_eq!(home.call("a", &token, ECHO.as_bytes())[0]["status"], "ok");
        run(["freeze", &path, "--tool", "current_time"]).fine();
        run(["revoke", &path, &token]).fine();
    };
    let needs = |args: &[&str], key: &str| {
        let failed = run_with(args, b"").failed(1);
        let says = format!("syscap: the {key} key is sealed: run this at a terminal");
        assert!(failed.err.starts_with(&says), "{}", failed.err);
    };
    let all = || {
        let records = home.log().len();
        needs(&["policy", "set", &path, "preset:read-only"], "policy");
        needs(&["policy", "set", &path, "--no-shadow"], "policy");
        needs(&["tools", "forget", &path, "t.x"], "operator");
        needs(&["thaw", &path, "--tool", "current_time"], "operator");
        needs(&["keys", "rotate", &path, "--role", "issuer"], "operator");
        let hook = ["hook", &path, "--agent", "a", "--client", "claude-code", "--setup", "--print"];
        needs(&hook, "operator");
        assert_eq!(home.log().len(), records, "nothing was recorded");
    };
    works();
    all();
    let serving = Serving::of(&path, &[]);
    works();
    all();
    // A document that is not sound needs nobody: it is refused, on the record.
    let bad = home.file("bad.json", "{}");
    run(["policy", "set", &path, &bad]).failed(3);
    serving.stop();
    assert_eq!(home.verify(), 0);
}

/// At a terminal the key's passphrase is asked for, also while another process holds the home; a
/// wrong one is asked for again, three times in all.
#[test]
fn at_a_terminal_a_person_signs() {
    if !terminal::is_there() {
        return;
    }
    let home = TestHome { folder: host_support::scratch() };
    sealed(&home.path(), "secret");
    let path = home.path();
    let ask = "Enter passphrase for the policy key: ";
    let mut person = Person::runs(["policy", "set", &path, "preset:read-only"]);
    person.sees(ask).types("guess").sees("not the passphrase").sees(ask).types("secret");
    person.end().hides("guess").fine();
    let serving = Serving::of(&path, &[]);
    let mut person = Person::runs(["policy", "set", &path, "preset:coder", "--shadow"]);
    person.sees(ask).types("secret");
    person.end().fine();
    let mut person = Person::runs(["policy", "set", &path, "--no-shadow"]);
    person.sees(ask).types("secret");
    person.end().fine();
    let records = home.log().len();
    let mut person = Person::runs(["policy", "set", &path, "preset:mailer"]);
    for _ in 0..3 {
        person.sees(ask).types("wrong");
    }
    assert_eq!(person.end().hides("wrong").code, Some(1));
    // Nothing typed is nobody there.
    let mut person = Person::runs(["policy", "set", &path, "preset:mailer"]);
    person.sees(ask).types("");
    assert_eq!(person.end().code, Some(1));
    assert_eq!(home.log().len(), records);
    let policies = home.log().into_iter().filter(|record| record["kind"] == "policy").count();
    assert_eq!(policies, 4, "the first, and three that were signed here");
    // A client's tools are put on record by whoever sets it up; their uses need nobody.
    let setup = ["hook", &path, "--agent", "a", "--client", "claude-code", "--setup", "--print"];
    let mut person = Person::runs(setup);
    person.sees("Enter passphrase for the operator key: ").types("secret");
    let settings = person.end().fine().out;
    assert!(settings.contains("PreToolUse"), "{settings}");
    let event = r#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Read",
        "tool_use_id":"u1","tool_input":{"file_path":"/x"},"cwd":"/"}"#;
    let hook = ["hook", &path, "--agent", "a", "--client", "claude-code"];
    let before = run_with(hook, event.as_bytes());
    assert_eq!(before.code, 0, "{}", before.err);
    assert!(home.log().iter().any(|record| record["kind"] == "intent"), "{}", before.out);
    // One that nobody has put on record is refused, with the command that does.
    let strange = event.replace("\"Read\"", "\"mcp__docs__find\"").replace("u1", "u2");
    let refused = run_with(hook, strange.as_bytes());
    assert_eq!(refused.code, 2);
    // The model reads it: it names no command.
    let said = &refused.err;
    assert!(said.contains("is not on record") && !said.contains("syscap tools"), "{said}");
    let mut person = Person::runs(["tools", "accept", &path, "claude_code.tool.mcp__docs__find"]);
    person.sees("Accept claude_code.tool.mcp__docs__find as shown?").types("y");
    person.sees("Enter passphrase for the operator key: ").types("secret");
    let told = person.end().fine();
    assert!(told.out.contains("accepted by record"), "{}", told.out);
    let listed = run(["tools", "list", &path, "--json"]).fine().json();
    let found =
        listed.iter().find(|tool| tool["tool"] == "claude_code.tool.mcp__docs__find").unwrap();
    assert_eq!(found["standing"], "ready");
    serving.stop();
    assert_eq!(home.verify(), 0);
}

/// A seal is of the file: whoever takes the file has nothing without the passphrase.
#[test]
fn a_sealed_file_holds_no_seed() {
    if !terminal::is_there() {
        return;
    }
    let home = TestHome { folder: host_support::scratch() };
    sealed(&home.path(), "secret");
    for name in ["policy", "approver", "operator", "recovery"] {
        let bytes = fs::read(home.beside(&format!("home/keys/{name}.key"))).unwrap();
        assert!(!bytes.windows(4).any(|window| window == b"seed"), "{name}");
        assert!(bytes.windows(8).any(|window| window == b"argon2id"), "{name}");
    }
}
