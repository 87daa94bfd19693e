//! Who, when, by which key and channel, because of what: of answers, revocations, freezes, policies.

use serde_json::{Value, json};

use crate::cli::approvals::{ask, asking, write};
use crate::cli::support::{Serving, TestHome, run};

fn record(home: &TestHome, seq: &Value) -> (String, Value) {
    let (path, seq) = (home.path(), seq.to_string());
    let text = run(["log", "show", &path, &seq]).fine().out;
    (text, run(["--json", "log", "show", &path, &seq]).fine().one())
}

fn line<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// The whole public key of a role, as `keys list` has it.
fn key(home: &TestHome, role: &str) -> String {
    let all = run(["--json", "keys", "list", &home.path()]).fine().json();
    let of = all.iter().find(|one| one["use"] == role).unwrap();
    of["keys"][0]["key"].as_str().unwrap().to_owned()
}

/// A reason stands beside a freeze, its end, a policy and a revocation; whoever looks reads it, by which
/// key, and the log verifies.
#[test]
fn reasons_are_read_back() {
    let home = TestHome::new();
    let (path, token) = (home.path(), home.worker("a"));
    let alice = key(&home, "revoker");
    run(["keys", "name", &path, &alice[..12], "alice"]).fine();
    let json = |words: &[&str]| run([&["--json"], words].concat()).fine().one();
    let frozen = json(&["freeze", &path, "--agent", "a", "--because", "a fire"]);
    assert!(frozen["why"].as_u64() > frozen["record"].as_u64(), "{frozen}");
    let thawed = json(&["thaw", &path, "--agent", "a", "--because", "it is out"]);
    let policy = home.file("p.json", crate::cli::approvals::POLICY);
    let set = json(&["policy", "set", &path, &policy, "--because", "the audit"]);
    let shadow = json(&["policy", "set", &path, &policy, "--shadow", "--because", "a trial"]);
    let ended = json(&["policy", "set", &path, "--no-shadow", "--because", "enough"]);
    let revoked = json(&["revoke", &path, &token, "--because", "left the team"]);
    for (seq, why, role, name) in [
        (&frozen["why"], "a fire", "revoker", Some("alice")),
        (&thawed["why"], "it is out", "signed", None),
        (&set["record"], "the audit", "policy", None),
        (&shadow["record"], "a trial", "policy", None),
        (&ended["record"], "enough", "policy", None),
        (&revoked["record"], "left the team", "revoker", Some("alice")),
    ] {
        let (text, of) = record(&home, seq);
        assert_eq!(line(&text, "because"), Some(why), "{text}");
        let actor = name.map_or(format!("({role})"), |name| format!("({role} {name})"));
        assert_eq!(line(&text, "agent"), Some(&*actor), "{text}");
        assert_eq!((&of["because"], &of["signed_by"][0]["name"]), (&json!(why), &json!(name)));
        assert!(line(&text, "signed by").is_some(), "{text}");
        let redacted = run(["log", "show", &path, &seq.to_string(), "--redacted"]).fine().out;
        assert!(!redacted.contains(why), "{redacted}");
    }
    // The stop itself is a record of its own, and came first.
    let (text, _) = record(&home, &frozen["record"]);
    assert_eq!(line(&text, "because"), None);
    let lines = run(["log", "show", &path]).fine().out;
    assert!(lines.contains("(revoker alice)"), "{lines}");
    // What is erased is said so, and the rest stays.
    run(["erase", &path, "--record", &frozen["why"].to_string()]).fine();
    let (text, of) = record(&home, &frozen["why"]);
    assert_eq!(line(&text, "because"), Some("(erased)"), "{text}");
    assert_eq!(of["because_kept"], "erased");
    assert_eq!(home.verify(), 0);
}

/// A stop does not wait for its reason: without the key here it stands, and that is said.
#[test]
fn freeze_stands_where_its_reason_can_not_be_recorded() {
    let home = TestHome::new();
    let path = home.path();
    let long = "x".repeat(5_000);
    let stopped = run(["freeze", &path, "--all", "--because", &long]);
    assert_eq!(stopped.code, 0, "{}", stopped.err);
    assert!(stopped.err.contains("the reason is not on record"), "{}", stopped.err);
    run(["thaw", &path, "--all"]).fine();
    let serving = Serving::of(&path, &[]);
    std::fs::remove_file(home.beside("home/keys/revoker.key")).unwrap();
    let stopped = run(["freeze", &path, "--all", "--because", "a fire"]);
    assert_eq!(stopped.code, 0, "{}", stopped.err);
    assert!(stopped.err.contains("the reason is not on record"), "{}", stopped.err);
    assert_eq!(home.log().iter().filter(|one| one["kind"] == "freeze").count(), 3);
    serving.stop();
}

/// An answer is read back whole: by whom, by which channel, because of what; that of a denied request
/// while it still stands, too.
#[test]
fn answers_are_shown_with_who_gave_them_and_why() {
    let (home, token) = asking();
    let path = home.path();
    let approver = key(&home, "approver");
    run(["keys", "name", &path, &approver, "Bob B."]).fine();
    let hostile = "ticket \u{1b}[2J\u{202e}42";
    let first = ask(&home.call("a", &token, write("a.txt", "one").as_bytes())[0]);
    let second = ask(&home.call("a", &token, write("b.txt", "two").as_bytes())[0]);
    run(["approvals", "approve", &path, &first, "--because", hostile]).fine();
    run(["approvals", "deny", &path, &second, "--because", "not today"]).fine();
    // What acts on a terminal stands as JSON writes it.
    let plain = r"ticket \u001b[2J\u202e42";
    for (ask, answer, why, shown) in
        [(&first, "once", hostile, plain), (&second, "deny", "not today", "not today")]
    {
        let text = run(["approvals", "show", &path, ask]).fine().out;
        let by = format!("{answer} by Bob B. ({}..), command, ", &approver[..12]);
        assert!(line(&text, "answer").is_some_and(|line| line.starts_with(&by)), "{text}");
        assert_eq!(line(&text, "because"), Some(shown), "{text}");
        let of = run(["--json", "approvals", "show", &path, ask]).fine().one();
        let given = &of["answers"][0];
        assert_eq!((&given["because"], &given["means"]), (&json!(why), &json!("command")));
        assert_eq!(given["signed_by"], json!([{"key": approver, "name": "Bob B."}]));
        let (text, _) = record(&home, &given["record"]);
        assert_eq!(
            (line(&text, "channel"), line(&text, "because")),
            (Some("command"), Some(shown))
        );
    }
    // What the agent is told of a no is nothing that is allowed.
    let refused = home.call("a", &token, write("b.txt", "two").as_bytes());
    assert_eq!(refused[0]["error"]["reason"], "approval_denied");
    let (text, _) = record(&home, &home.log().last().unwrap()["seq"]);
    assert_eq!(line(&text, "  because:"), None, "it closed its session: {text}");
    let refusal = home.log().into_iter().rfind(|one| one["kind"] == "refusal").unwrap();
    let (text, _) = record(&home, &refusal["seq"]);
    assert_eq!(line(&text, "  because:"), Some("not today"), "{text}");
    assert!(!text.contains("allowed:"), "{text}");
    // It has run since, and is shown all the same.
    home.call("a", &token, write("a.txt", "one").as_bytes());
    let text = run(["approvals", "show", &path, &first]).fine().out;
    assert_eq!(line(&text, "because"), Some(plain), "{text}");
    assert_eq!(home.verify(), 0);
}

/// A name is one line for one key, and takes nobody in.
#[test]
fn keys_have_names_of_the_homes_own() {
    let home = TestHome::new();
    let path = home.path();
    let (one, two) = (key(&home, "approver"), key(&home, "operator"));
    run(["keys", "name", &path, &one[..8], "alice"]).fine();
    for (key, name) in [
        (&*two, "alice"),
        (&two, "a\nb"),
        (&two, "\u{1b}[31mred"),
        (&two, "evil\u{202e}"),
        (&two, &"x".repeat(65)),
        (&two[..7], "bob"),
        ("zz", "bob"),
        (&"0".repeat(64), "bob"),
    ] {
        let refused = run(["keys", "name", &path, key, name]);
        assert_eq!((refused.code, &*refused.out), (2, ""), "{key} {name}");
        assert!(!refused.err.contains('\u{1b}'));
    }
    let list = run(["keys", "list", &path]).fine().out;
    assert!(list.contains(&format!("{one}  alice  counter")), "{list}");
    run(["keys", "name", &path, &one[..8], "Alice"]).fine();
    run(["keys", "name", &path, &one[..8]]).fine();
    assert!(!run(["keys", "list", &path]).fine().out.contains("lice"));
    // No record is made for it.
    assert!(home.log().iter().all(|one| one["kind"] != "key"));
    assert_eq!(home.verify(), 0);
}
