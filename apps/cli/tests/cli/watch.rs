//! `approvals watch`: what waits is seen as it comes, and answered key by key at a terminal.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::cli::approvals::{POLICY, ask, asking, write};
use crate::cli::support::{TestHome, reason, run, syscap};
use crate::cli::terminal::{self, Person, sealed};

/// A home whose keys are sealed, which asks about writes, and a token for them.
fn guarded() -> (TestHome, String) {
    let home = TestHome { folder: host_support::scratch() };
    sealed(&home.path(), "secret");
    let policy = home.file("policy.json", POLICY);
    let mut person = Person::runs(["policy", "set", &home.path(), &policy]);
    person.sees("Enter passphrase for the policy key: ").types("secret");
    person.end().fine();
    let token =
        home.token("a", &["--tool", "fs.write", "--read", "workspace", "--write", "workspace"]);
    (home, token)
}

fn of_kind(home: &TestHome, kind: &str) -> Vec<Value> {
    home.log().into_iter().filter(|record| record["kind"] == kind).collect()
}

#[test]
fn watch_shows_requests_and_answers_by_keys() {
    if !terminal::is_there() {
        return;
    }
    let (home, token) = guarded();
    let path = home.path();
    let call = |file: &str| home.call("a", &token, write(file, "hello").as_bytes()).remove(0);
    let mut person = Person::runs(["approvals", "watch", &path]);
    person.sees("0 calls wait for a person");
    let first = ask(&call("a.txt"));
    person.sees("1 calls wait for a person").sees(&format!("  {first}  waits"));
    // What has just come is not chosen by itself.
    person.press(b"a").sees("choose one first");
    person.press(b"j").sees("> ").press(b"\n").sees("path: write workspace/a.txt of a");
    person.sees("a: approve it once").press(b"a");
    person.sees("Enter passphrase for the approver key: ").types("secret");
    person.sees("0 calls wait for a person").sees("approved by record ");
    assert_eq!(call("a.txt")["status"], "ok");
    assert_eq!(std::fs::read_to_string(home.workspace("a").join("a.txt")).unwrap(), "hello");
    // The passphrase is asked for once.
    let second = ask(&call("b.txt"));
    person.sees(&second).press(b"\x1b[B").sees("> ").press(b"a");
    person.sees("workspace/b.txt").sees("a: approve it once").press(b"a");
    person.sees("approved by record ");
    assert_eq!(call("b.txt")["status"], "ok");
    let third = ask(&call("c.txt"));
    person.sees(&third).press(b"j").sees("> ").press(b"d").sees("tell the agent why");
    person.press(b"not heere").sees("because: not heere").press(b"\x7f\x7f\x7fre\n");
    person.sees("denied by record ");
    let refused = call("c.txt");
    assert_eq!(reason(&refused), "approval_denied");
    assert_eq!(refused["error"]["allowed"], "not here");
    person.press(b"q");
    let told = person.end().fine();
    assert_eq!(told.shown.matches("Enter passphrase").count(), 1);
    let means: Vec<_> = of_kind(&home, "approval");
    assert_eq!(means.len(), 3);
    assert_eq!(home.verify(), 0);
}

#[test]
fn like_calls_are_approved_together() {
    if !terminal::is_there() {
        return;
    }
    let (home, token) = guarded();
    let other =
        home.token("b", &["--tool", "fs.write", "--read", "workspace", "--write", "workspace"]);
    let call = |file: &str| home.call("a", &token, write(file, "hello").as_bytes()).remove(0);
    let asks = ["a.txt", "b.txt"].map(|file| ask(&call(file)));
    let stranger = ask(&home.call("b", &other, write("a.txt", "hello").as_bytes())[0]);
    let mut person = Person::runs(["approvals", "watch", &home.path()]);
    // The first that waits when it begins is chosen.
    person.sees("3 calls wait for a person").sees(&format!("{}  waits", asks[0]));
    person.press(b"A").sees("all of 2 like calls").sees("workspace/a.txt");
    // Not all of it fits at once.
    person.sees("space: there is more of it").press(b"A").sees("there is more of it: space");
    assert_eq!(of_kind(&home, "approval").len(), 0);
    person.press(b" ").sees("workspace/b.txt").sees("A: approve each of them once").press(b"A");
    person.sees("Enter passphrase for the approver key: ").types("secret");
    person.sees("1 calls wait").sees(&stranger).sees("approved by record ").press(b"q");
    person.end().fine();
    for file in ["a.txt", "b.txt"] {
        assert_eq!(call(file)["status"], "ok");
    }
    let refused = home.call("b", &other, write("a.txt", "hello").as_bytes()).remove(0);
    assert_eq!(ask(&refused), stranger);
    assert_eq!(home.verify(), 0);
}

/// However fast somebody presses keys: what was not on the screen is not approved.
#[test]
fn watch_approves_nothing_unseen() {
    if !terminal::is_there() {
        return;
    }
    let (home, token) = guarded();
    let text = format!("{}{}", "long ".repeat(900), "\u{1b}[31m\u{202e}");
    let args = json!({"tool_id": "fs.write", "args": {"path": "a.txt", "text": text}});
    ask(&home.call("a", &token, args.to_string().as_bytes())[0]);
    let records = home.log().len();
    let mut person = Person::runs(["approvals", "watch", &home.path()]);
    person.sees("1 calls wait for a person").press(b"aaaaaaaa").sees("there is more of it: space");
    // Nor by going on faster than it can be shown.
    person.press(b"    a").sees("there is more of it: space");
    person.sees("space: there is more of it   Esc: back");
    person.press(b"\x1b").sees("1 calls wait for a person").press(b"\x03");
    let told = person.end();
    assert_eq!(told.code, None);
    assert!(person.echoes(), "the terminal is as it was");
    assert_eq!(home.log().len(), records);
    // It does not colour the screen, nor turn it round.
    assert!(!told.shown.contains("\u{1b}[31m") && !told.shown.contains('\u{202e}'));
    let mut person = Person::runs(["approvals", "watch", &home.path()]);
    person.sees("1 calls wait for a person").press(b"a");
    for _ in 0..3 {
        person.sees("space: there is more of it").press(b" ");
    }
    person.sees("a: approve it once").press(b"a").sees("Enter passphrase").types("wrong");
    person.sees("Enter passphrase").types("wrong").sees("Enter passphrase").types("wrong");
    // Who can't unseal it goes on looking.
    person.sees("1 calls wait for a person").press(b"q");
    assert_eq!(person.end().code, Some(0));
    assert_eq!(home.log().len(), records);
}

/// Without a terminal each is printed once, and nothing is answered.
#[test]
fn without_a_terminal_calls_are_printed_as_they_come() {
    let (home, token) = asking();
    let path = home.path();
    let call = |file: &str| home.call("a", &token, write(file, "hello").as_bytes()).remove(0);
    let first = ask(&call("a.txt"));
    for flags in [&[][..], &["--json"]] {
        let mut command = syscap();
        command.args(["approvals", "watch", &path]).args(flags);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.as_mut().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = || lines.next().unwrap().unwrap();
        let shown = next();
        let second = ask(&call(if flags.is_empty() { "b.txt" } else { "c.txt" }));
        let mut came = next();
        if flags.is_empty() {
            assert!(shown.starts_with(&format!("{first}  waits  a  fs.write  ")), "{shown}");
            assert!(came.starts_with(&format!("{second}  waits  ")), "{came}");
        } else {
            let of: Value = serde_json::from_str(&shown).unwrap();
            assert_eq!((of["ask"].to_string(), &of["agent"]), (first.clone(), &json!("a")));
            // What came before is there from the beginning.
            came = next();
            let of: Value = serde_json::from_str(&came).unwrap();
            assert_eq!(of["ask"].to_string(), second);
            assert_eq!(of["arguments"], json!({"path": "c.txt", "text": "hello"}));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(of_kind(&home, "approval").len(), 0);
    run(["approvals", "watch", &home.text_beside("nowhere")]).failed(4);
}
