//! `approvals`: a person at a terminal answers calls that wait.

use serde_json::{Value, json};

use crate::cli::support::{Serving, TestHome, reason, run, run_with};
use crate::cli::terminal::{self, Person, sealed};

pub(crate) const POLICY: &str = r#"{"v": 1, "constraints": [{"id": "writes", "effect": "allow",
    "subject": {"tool_id": "fs.write"}, "when": {"op": "eq", "args": ["args.path", ""]},
    "on_fail": "ask", "reason": "Somebody looks at what is written."}]}"#;

pub(crate) fn write(path: &str, text: &str) -> String {
    format!(r#"{{"tool_id": "fs.write", "args": {{"path": "{path}", "text": "{text}"}}}}"#)
}

/// The ask that a refused call waits under.
pub(crate) fn ask(result: &Value) -> String {
    assert_eq!((reason(result), &result["error"]["field"]), ("asked", &json!("approval")));
    result["error"]["got"].as_str().unwrap().to_owned()
}

pub(crate) fn asking() -> (TestHome, String) {
    let home = TestHome::new();
    let policy = home.file("policy.json", POLICY);
    run(["policy", "set", &home.path(), &policy]).fine();
    let token =
        home.token("a", &["--tool", "fs.write", "--read", "workspace", "--write", "workspace"]);
    (home, token)
}

#[test]
fn calls_that_wait_are_listed_and_answered() {
    let (home, token) = asking();
    let path = home.path();
    assert_eq!(run(["approvals", "list", &path]).fine().out, "");
    let (one, other) = (write("a.txt", "hello"), write("b.txt", "there"));
    let first = ask(&home.call("a", &token, one.as_bytes())[0]);
    let second = ask(&home.call("a", &token, other.as_bytes())[0]);
    let list = run(["--json", "approvals", "list", &path, "--all"]).fine().json();
    let shown: Vec<_> = list.iter().map(|call| call["ask"].to_string()).collect();
    assert_eq!(shown, [first.clone(), second.clone()]);
    // Their sessions have ended.
    let open = run(["approvals", "list", &path]);
    assert_eq!((open.code, &*open.out), (0, ""), "{}", open.err);
    assert!(open.err.contains("2 more of ended sessions: syscap approvals list "), "{}", open.err);
    let call = run(["--json", "approvals", "show", &path, &first]).fine().one();
    assert_eq!(call["arguments"], json!({"path": "a.txt", "text": "hello"}));
    assert_eq!(call["resources"], json!(["path: write workspace/a.txt of a"]));
    assert_eq!((&call["constraint"], &call["standing"]), (&json!("writes"), &json!("waits")));
    assert_eq!(call["last_like"], json!(null));
    let told = run(["approvals", "show", &path, &first]).fine().out;
    assert!(
        told.contains("path: write workspace/a.txt of a") && told.contains("\"hello\""),
        "{told}"
    );
    // Beside a process that holds the home, too.
    let serving = Serving::of(&path, &[]);
    run(["approvals", "approve", &path, &first, "--because", "it is a draft"]).fine();
    run(["approvals", "deny", &path, &second, "--because", "not there"]).fine();
    // Until they are taken up it is seen which is which, and neither is answered again.
    let list = run(["--json", "approvals", "list", &path, "--all"]).fine().json();
    let states = list.iter().map(|call| (call["standing"].clone(), call["approved"].clone()));
    let wanted = [(json!("approved"), json!(1)), (json!("denied"), json!(0))];
    assert_eq!(states.collect::<Vec<_>>(), wanted);
    for ask in [&first, &second] {
        run(["approvals", "approve", &path, ask]).failed(2);
        run(["approvals", "deny", &path, ask]).failed(2);
        let call = run(["--json", "approvals", "show", &path, ask]).fine().one();
        assert_eq!(call["proposals"], json!([]));
    }
    let done = run_with(["call", &path, "--agent", "a", "--token", &token], one.as_bytes());
    assert_eq!(done.fine().one()["status"], "ok");
    serving.stop();
    assert_eq!(std::fs::read_to_string(home.workspace("a").join("a.txt")).unwrap(), "hello");
    let refused = home.call("a", &token, other.as_bytes());
    assert_eq!(reason(&refused[0]), "approval_denied");
    assert_eq!(refused[0]["error"]["allowed"], "not there");
    assert!(!home.workspace("a").join("b.txt").exists());
    // One that was answered and has run is shown, with its answer and the call that ran by it.
    let call = run(["--json", "approvals", "show", &path, &first]).fine().one();
    assert_eq!((&call["standing"], &call["approved"]), (&json!("approved"), &json!(1)));
    assert_eq!(call["arguments"], json!({"path": "a.txt", "text": "hello"}));
    let log = home.log();
    let kind = |seq: &Value| log[usize::try_from(seq.as_u64().unwrap()).unwrap()]["kind"].clone();
    assert_eq!(call["answers"].as_array().unwrap().len(), 1);
    assert_eq!(call["answers"][0]["answer"], "once");
    assert_eq!(kind(&call["answers"][0]["record"]), "approval");
    assert_eq!(call["intents"].as_array().unwrap().len(), 1);
    assert_eq!(kind(&call["intents"][0]), "intent");
    let ran = format!("record {}", call["intents"][0]);
    assert!(run(["approvals", "show", &path, &first]).fine().out.contains(&ran));
    // No other record is one that asks.
    run(["approvals", "show", &path, "0"]).failed(2);
    run(["approvals", "show", &path, "99999"]).failed(2);
    // The next like it is shown beside it.
    let third = ask(&home.call("a", &token, write("a.txt", "you").as_bytes())[0]);
    let call = run(["--json", "approvals", "show", &path, &third]).fine().one();
    let changed = json!([{"name": "text", "was": "hello", "is": "you"}]);
    assert_eq!(call["last_like"]["changed"], changed);
    let told = run(["approvals", "show", &path, &third]).fine().out;
    assert!(told.contains(r#"text: "you" was "hello""#), "{told}");
    let fourth = ask(&home.call("a", &token, write("a.txt", "hello").as_bytes())[0]);
    let call = run(["--json", "approvals", "show", &path, &fourth]).fine().one();
    assert_eq!(call["last_like"]["changed"], json!([]));
    // What was used up, or was never there, is not waiting.
    run(["approvals", "approve", &path, &first]).failed(2);
    run(["approvals", "approve", &path, &second]).failed(2);
    run(["approvals", "deny", &path, "999999"]).failed(2);
    assert_eq!(home.verify(), 0);
}

/// What a call would change is shown of the file that its run is bound to, and of no other.
#[test]
fn change_of_a_file_is_shown_while_it_is_the_one_asked_about() {
    let home = TestHome::new();
    let path = home.path();
    let of = |tool: &str| {
        json!({"id": tool.replace('.', "-"), "effect": "allow", "subject": {"tool_id": tool},
            "when": {"op": "eq", "args": ["args.path", ""]}, "on_fail": "ask", "reason": "Look."})
    };
    let tools = ["fs.write", "fs.edit", "fs.delete"];
    let policy = json!({"v": 1, "constraints": tools.map(of)}).to_string();
    run(["policy", "set", &path, &home.file("policy.json", &policy)]).fine();
    let mut grant = vec!["--read", "workspace", "--write", "workspace"];
    tools.iter().for_each(|tool| grant.extend(["--tool", tool]));
    let token = home.token("a", &grant);
    let file = home.workspace("a").join("a.txt");
    let asked = |tool: &str, args: Value| {
        let call = json!({"tool_id": tool, "args": args}).to_string();
        ask(&home.call("a", &token, call.as_bytes())[0])
    };
    let shown = |ask: &str| {
        run(["--json", "approvals", "show", &path, ask]).fine().one()["difference"].clone()
    };
    let new = asked("fs.write", json!({"path": "a.txt", "text": "new\n"}));
    assert_eq!(shown(&new), json!(["@@ -0,0 +1 @@", "+new"]));
    // Somebody puts one there.
    std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
    assert_eq!(shown(&new), json!(null));
    let edit = asked("fs.edit", json!({"path": "a.txt", "old": "two", "new": "\u{202e}2"}));
    let lines = ["@@ -1,3 +1,3 @@", " one", "-two", "+\u{202e}2", " three"];
    assert_eq!(shown(&edit), json!(lines));
    let told = run(["approvals", "show", &path, &edit]).fine().out;
    assert!(told.contains("changes\n  @@ -1,3 +1,3 @@\n   one\n  -two\n  +\\u202e2\n"), "{told}");
    let written = asked("fs.write", json!({"path": "a.txt", "bytes": {"$bytes": "b25lCg=="}}));
    let written = shown(&written);
    assert_eq!(written, json!(["@@ -1,3 +1 @@", " one", "-two", "-three"]));
    let delete = asked("fs.delete", json!({"path": "a.txt"}));
    assert_eq!(shown(&delete), json!(["@@ -1,3 +0,0 @@", "-one", "-two", "-three"]));
    let none = asked("fs.edit", json!({"path": "a.txt", "old": "four", "new": "4"}));
    assert_eq!(shown(&none), json!(null));
    // It is another file by now, and then a link to one that agents can't reach.
    std::fs::write(&file, "one\ntwo\nthree\nfour\n").unwrap();
    assert_eq!((shown(&edit), shown(&delete)), (json!(null), json!(null)));
    let outside = home.file("outside", "one\ntwo\nthree\n");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&outside, &file).unwrap();
    assert_eq!((shown(&edit), shown(&delete)), (json!(null), json!(null)));
    // As it was, but too large to be shown.
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, vec![b'x'; (256 << 10) + 1]).unwrap();
    let large = asked("fs.write", json!({"path": "a.txt", "text": "new"}));
    assert_eq!(shown(&large), json!(null));
}

/// The approvers' key is sealed: an agent's own processes can't approve, a person can.
#[test]
fn a_person_approves_at_a_terminal() {
    if !terminal::is_there() {
        return;
    }
    let home = TestHome { folder: host_support::scratch() };
    sealed(&home.path(), "secret");
    let path = home.path();
    let policy = home.file("policy.json", POLICY);
    let mut person = Person::runs(["policy", "set", &path, &policy]);
    person.sees("Enter passphrase for the policy key: ").types("secret");
    person.end().fine();
    let token =
        home.token("a", &["--tool", "fs.write", "--read", "workspace", "--write", "workspace"]);
    let call = write("a.txt", "hello");
    let first = ask(&home.call("a", &token, call.as_bytes())[0]);
    let records = home.log().len();
    // Without a terminal there is nobody to be asked.
    let alone = run(["--json", "approvals", "approve", &path, &first]);
    assert_eq!(alone.code, 1);
    assert!(alone.err.contains("approver key is sealed"), "{}", alone.err);
    let mut guess = Person::runs(["approvals", "approve", &path, &first]);
    for _ in 0..3 {
        guess.sees("Enter passphrase for the approver key: ").types("wrong");
    }
    assert_eq!(guess.end().code, Some(1));
    assert_eq!(home.log().len(), records);
    assert_eq!(ask(&home.call("a", &token, call.as_bytes())[0]), first);
    let mut person = Person::runs(["approvals", "approve", &path, &first]);
    person.sees("Enter passphrase for the approver key: ").types("secret");
    let told = person.end().fine();
    assert!(told.out.contains("approved by record"), "{}", told.out);
    assert_eq!(home.call("a", &token, call.as_bytes())[0]["status"], "ok");
    // Once: the same call asks anew.
    assert_ne!(ask(&home.call("a", &token, call.as_bytes())[0]), first);
    assert_eq!(home.verify(), 0);
}

/// A person answers for more than one call: what was shown goes on, what lies outside asks again,
/// and it runs out.
#[test]
fn a_person_approves_a_set_at_a_terminal() {
    if !terminal::is_there() {
        return;
    }
    let home = TestHome { folder: host_support::scratch() };
    sealed(&home.path(), "secret");
    let path = home.path();
    let policy = home.file("policy.json", POLICY);
    let mut person = Person::runs(["policy", "set", &path, &policy]);
    person.sees("Enter passphrase for the policy key: ").types("secret");
    person.end().fine();
    let token =
        home.token("a", &["--tool", "fs.write", "--read", "workspace", "--write", "workspace"]);
    std::fs::create_dir_all(home.workspace("a").join("notes")).unwrap();
    let call =
        |file: &str, text: &str| home.call("a", &token, write(file, text).as_bytes()).remove(0);
    let first = ask(&call("notes/a.txt", "1"));
    let shown = run(["--json", "approvals", "show", &path, &first]).fine().one();
    assert_eq!(
        (&shown["uses_max"], &shown["proposals"][1]["wider"]),
        (&json!(1_000), &json!(true))
    );
    assert_eq!(
        shown["proposals"][1]["scopes"],
        json!(["path: all below write workspace/notes of a"])
    );
    for proposal in 0..2 {
        assert_eq!(shown["proposals"][proposal]["covered"], 1);
    }
    // Its session has ended, so somebody has to say how long.
    let endless = run(["approvals", "approve", &path, &first, "--uses", "3"]).failed(2);
    assert!(endless.err.contains("--for"), "{}", endless.err);
    for bad in [
        &["--for", "1h"][..],
        &["--uses", "0", "--for", "1h"],
        &["--uses", "1001", "--for", "1h"],
        &["--uses", "3", "--for", "25h"],
        &["--wider"],
        &["--uses", "3", "--wider"],
    ] {
        let given = ["approvals", "approve", &path, &first].into_iter().chain(bad.iter().copied());
        assert_eq!(run(given).code, 2, "{bad:?}");
    }
    let set = ["approvals", "approve", &path, &first, "--uses", "3", "--for", "1h", "--wider"];
    let mut person = Person::runs(set);
    person.sees("Enter passphrase for the approver key: ").types("secret");
    let told = person.end().fine();
    assert!(told.out.contains("path: all below write workspace/notes of a"), "{}", told.out);
    assert_eq!(call("notes/a.txt", "1")["status"], "ok");
    assert_eq!(call("notes/b.txt", "2")["status"], "ok");
    let outside = ask(&call("c.txt", "3"));
    let stands = run(["--json", "approvals", "sets", &path]).fine().one();
    assert_eq!((&stands["ask"].to_string(), &stands["left"]), (&first, &json!(1)));
    assert!(run(["approvals", "sets", &path]).fine().out.contains("1 calls left"));
    assert_eq!(call("notes/c.txt", "4")["status"], "ok");
    assert_eq!(run(["approvals", "sets", &path]).fine().out, "");
    assert!(ask(&call("notes/a.txt", "5")) > outside);
    assert_eq!(home.verify(), 0);
}

#[test]
fn a_no_ends_what_was_approved_for_more_calls() {
    let (home, token) = asking();
    let path = home.path();
    let call = |text: &str| home.call("a", &token, write("a.txt", text).as_bytes()).remove(0);
    let first = ask(&call("1"));
    run(["approvals", "approve", &path, &first, "--uses", "9", "--for", "1h"]).fine();
    assert_eq!(call("2")["status"], "ok");
    run(["approvals", "deny", &path, &first, "--because", "enough"]).fine();
    assert_eq!(run(["approvals", "sets", &path]).fine().out, "");
    assert!(ask(&call("3")) != first);
    run(["approvals", "deny", &path, &first]).failed(2);
    assert_eq!(home.verify(), 0);
}

/// In a build nobody is there: it is refused at once, and nothing waits.
#[test]
fn without_a_head_nothing_waits() {
    let (home, token) = asking();
    let path = home.path();
    let call = write("a.txt", "hello");
    let made = |flags: &[&str]| {
        let words = ["call", &path, "--agent", "a", "--token", &token];
        run_with(words.iter().chain(flags).copied(), call.as_bytes()).fine().one()
    };
    let waits = || run(["approvals", "list", &path, "--all"]).fine().out.lines().count();
    let refused = made(&["--headless"]);
    assert_eq!((reason(&refused), &refused["error"]["field"]), ("asked", &json!("path")));
    assert_eq!(waits(), 0);
    let mcp = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "fs_write", "arguments": {"path": "a.txt", "text": "hello"}}}),
    ];
    let lines: String = mcp.iter().map(|line| format!("{line}\n")).collect();
    let words = ["mcp", &path, "--agent", "a", "--token", &token, "--builtins", "--headless"];
    let said = run_with(words, lines.as_bytes());
    assert!(said.out.contains("asked (403)"), "{}{}", said.out, said.err);
    assert_eq!(waits(), 0);
    // A server can say it of all calls, a client of its own.
    let serving = Serving::of(&path, &["--headless"]);
    assert_eq!(made(&[])["error"]["field"], "path");
    serving.stop();
    assert_eq!(waits(), 0);
    let serving = Serving::of(&path, &[]);
    assert_eq!(made(&["--headless"])["error"]["field"], "path");
    assert_eq!(waits(), 0);
    ask(&made(&[]));
    serving.stop();
    assert_eq!(waits(), 1);
    assert_eq!(home.verify(), 0);
}
