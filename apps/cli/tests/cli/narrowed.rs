//! `token narrow`, and what goes on by the token that it makes.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::cli::approvals::{POLICY, ask, write};
use crate::cli::support::{ECHO, TestHome, run, syscap};

fn shown(home: &TestHome, token: &str) -> Value {
    run(["token", "show", &home.path(), token, "--json"]).fine().one()
}

fn narrow(home: &TestHome, words: &[&str]) -> Vec<Value> {
    let path = home.path();
    let mut args = vec!["token", "narrow", &path, "--json"];
    args.extend(words);
    let run = run(args);
    assert_eq!(run.code, 0, "{}", run.err);
    run.json()
}

fn calls(home: &TestHome, agent: &str, token: &str, line: &str, count: usize) -> Vec<Value> {
    home.call(agent, token, format!("{}\n", line.trim()).repeat(count).as_bytes())
}

/// Why it was refused; empty where it ran.
fn reason(result: &Value) -> &str {
    result["error"]["reason"].as_str().unwrap_or_default()
}

const READ: &str = r#"{"tool_id": "fs.read", "args": {"path": "notes/a.txt"}}"#;

#[test]
fn narrowed_token_gives_less_and_refills_nothing() {
    let home = TestHome::new();
    let tools = ["--tool", "echo,fs.read,fs.write", "--read", "workspace", "--write", "workspace"];
    let old = home.token("a", &[&tools[..], &["--budget", "calls=10"]].concat());
    let made =
        r#"{"tool_id": "fs.write", "args": {"path": "notes/a.txt", "text": "x", "parents": true}}"#;
    assert_eq!(reason(&calls(&home, "a", &old, made, 1)[0]), "");
    calls(&home, "a", &old, ECHO, 2);
    let records = home.log().len();
    let would =
        narrow(&home, &[&old, "--without", "fs.write", "--path", "workspace/notes", "--dry-run"]);
    assert_eq!((would.len(), &would[0]["without"]), (1, &json!(["fs.write"])));
    assert_eq!(home.log().len(), records, "a dry run writes nothing");
    let done = narrow(&home, &[&old, "--without", "fs.write", "--path", "workspace/notes"]);
    let new = done[0]["token_id"].as_str().unwrap().to_owned();
    let (before, after) = (shown(&home, &old), shown(&home, &new));
    assert_eq!((&before["standing"], &after["standing"]), (&json!("revoked"), &json!("live")));
    assert_eq!(after["expires_ms"], before["expires_ms"]);
    let between = shown(&home, after["renews"].as_str().unwrap());
    assert_eq!((&between["renews"], &between["grants"]), (&json!(old), &json!({})));
    assert_eq!(after["budget"]["calls"]["limit"], 7);
    assert_eq!(after["budget"]["concurrent"], before["budget"]["concurrent"]);
    let tools: Vec<&String> = after["grants"].as_object().unwrap().keys().collect();
    assert_eq!(tools, ["echo", "fs.read"]);
    let paths = &after["grants"]["fs.read"]["path"]["paths"];
    assert_eq!((paths.as_array().unwrap().len(), &paths[0]["below"]), (1, &json!("notes")));
    // Whoever names the old one goes on by the new one.
    let said = home.call("a", &old, [READ, &write("notes/a.txt", "y"), ECHO].join("\n").as_bytes());
    let reasons: Vec<&str> = said.iter().map(reason).collect();
    assert_eq!(reasons, ["", "not_granted", ""]);
    let elsewhere = READ.replace("notes/", "");
    assert_eq!(reason(&calls(&home, "a", &new, &elsewhere, 1)[0]), "out_of_scope");
    // Nothing more to take.
    assert!(narrow(&home, &[&new, "--without", "fs.write"]).is_empty());
    let path = home.path();
    run(["token", "narrow", &path, &old, "--without", "echo"]).failed(2);
    run(["token", "narrow", &path, &new]).failed(2);
    let record = done[0]["record"].to_string();
    let because = run(["log", "show", &path, &record]).fine().out;
    assert!(because.contains("narrowed"), "{because}");
    assert_eq!(home.verify(), 0);
}

/// All of an agent's tokens at once; what was derived ends and is named, and is not narrowed itself.
#[test]
fn every_token_of_an_agent_is_narrowed() {
    let home = TestHome::new();
    let flags = ["--tool", "echo,fs.list", "--read", "workspace", "--delegable", "1"];
    let [first, second] = [home.token("a", &flags), home.token("a", &flags)];
    let other = home.token("a", &["--tool", "fs.list", "--read", "workspace"]);
    let foreign = home.token("b", &flags);
    let path = home.path();
    let derived =
        ["token", "attenuate", &path, "--from", &first, "--agent", "a/b", "--tool", "echo"];
    let derived = run(derived).fine().out.trim_end().to_owned();
    let refused = run(["token", "narrow", &path, &derived, "--without", "echo"]).failed(2);
    assert!(refused.err.contains("attenuate"), "{}", refused.err);
    let done = run(["token", "narrow", &path, "--agent", "a", "--without", "echo", "--json"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains(&derived), "{}", done.err);
    let narrowed: Vec<Value> = done.json().iter().map(|one| one["narrowed"].clone()).collect();
    assert_eq!(narrowed, [json!(first), json!(second)]);
    let standing = |token: &str| shown(&home, token)["standing"].as_str().unwrap().to_owned();
    let all = [&first, &second, &derived, &other, &foreign].map(|token| standing(token));
    assert_eq!(all, ["revoked", "revoked", "revoked", "live", "live"]);
}

/// Off and on again, over and over: no call is lost, none is won.
#[test]
fn twenty_times_off_and_on_give_no_call_more() {
    let home = TestHome::new();
    let path = home.path();
    let flags = ["--tool", "echo,fs.list", "--read", "workspace", "--budget", "calls=5"];
    let first = home.token("a", &flags);
    calls(&home, "a", &first, ECHO, 1);
    let mut now = first.clone();
    for _ in 0..20 {
        let off = narrow(&home, &[&now, "--without", "fs.list"]);
        let off = off[0]["token_id"].as_str().unwrap().to_owned();
        let on =
            ["token", "reissue", &path, &off, "--tool", "fs.list", "--read", "workspace", "--left"];
        now = run(on).fine().out.trim_end().to_owned();
    }
    let shown = shown(&home, &now);
    assert_eq!(shown["budget"]["calls"]["limit"], 4);
    let live = run(["token", "list", &path, "--json"]).fine().json();
    assert_eq!(live.iter().filter(|token| token["standing"] == "live").count(), 1);
    // By the first one's name, too.
    let said = calls(&home, "a", &first, ECHO, 6);
    let ran = said.iter().filter(|result| result["status"] == "ok").count();
    assert_eq!(ran, 4, "{said:?}");
    assert_eq!(home.verify(), 0);
}

/// Calls that go on meanwhile spend what there was, and no more.
#[test]
fn calls_beside_a_narrowing_spend_no_more() {
    let home = TestHome::new();
    let flags = ["--tool", "echo,fs.list,fs.read,fs.write", "--read", "workspace"];
    let token = home.token("a", &[&flags[..], &["--budget", "calls=300"]].concat());
    let mut command = syscap();
    command.args(["call", &home.path(), "--agent", "a", "--token", &token, "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines = std::thread::spawn(move || {
        let all = format!("{}\n", ECHO.trim()).repeat(400);
        input.write_all(all.as_bytes()).unwrap();
    });
    let mut now = token.clone();
    for tool in ["fs.list", "fs.read", "fs.write"] {
        let done = narrow(&home, &[&now, "--without", tool]);
        now = done[0]["token_id"].as_str().unwrap().to_owned();
    }
    let out = child.wait_with_output().unwrap();
    lines.join().unwrap();
    assert!(out.status.success());
    let text = String::from_utf8(out.stdout).unwrap();
    let ran = text.lines().filter(|line| line.contains(r#""status":"ok""#)).count();
    assert_eq!(text.lines().count(), 400);
    assert!(ran <= 300, "{ran} calls ran of 300");
    // What is refused in between may pay a call, too.
    let revoked = text.lines().filter(|line| line.contains(r#""reason":"revoked""#)).count();
    assert!(ran + revoked >= 300, "{ran} calls ran of 300, {revoked} were refused in between");
    println!("{ran} of 300 calls ran, {revoked} were refused in between");
    assert_eq!(home.verify(), 0);
}

/// What a person has approved for more calls holds on; so does a repeat under its key.
#[test]
fn approvals_and_keys_outlive_a_narrowing() {
    let home = TestHome::new();
    let path = home.path();
    let policy = home.file("policy.json", POLICY);
    run(["policy", "set", &path, &policy]).fine();
    let flags = ["--tool", "fs.write,echo", "--read", "workspace", "--write", "workspace"];
    let token = home.token("a", &flags);
    let line = write("a.txt", "hello");
    let asked = ask(&calls(&home, "a", &token, &line, 1)[0]);
    run(["approvals", "approve", &path, &asked, "--uses", "5", "--for", "1h"]).fine();
    assert_eq!(reason(&calls(&home, "a", &token, &line, 1)[0]), "");
    let keyed = r#"{"tool_id": "fs.write", "args": {"path": "a.txt", "text": "hello"},
        "idempotency_key": "k"}"#
        .replace('\n', "");
    calls(&home, "a", &token, &keyed, 1);
    let intents = || home.log().iter().filter(|record| record["kind"] == "intent").count();
    let before = intents();
    narrow(&home, &[&token, "--without", "echo"]);
    let again = calls(&home, "a", &token, &keyed, 1);
    assert_eq!((reason(&again[0]), intents()), ("", before), "it has run once");
    assert_eq!(reason(&calls(&home, "a", &token, &line, 1)[0]), "");
    assert_eq!(home.verify(), 0);
}

/// Of commands that replace a token at once one does, and what is left is given once.
#[test]
fn token_is_narrowed_once_by_many() {
    let home = TestHome::new();
    let flags = ["--tool", "echo,fs.list", "--read", "workspace", "--budget", "calls=9"];
    for _ in 0..3 {
        let token = home.token("a", &flags);
        let path = home.path();
        let start = |_| {
            let mut command = syscap();
            command.args(["token", "narrow", &path, &token, "--without", "fs.list", "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let ended: Vec<_> = [0; 8].map(start).map(|one| one.wait_with_output().unwrap()).into();
        let codes: Vec<_> = ended.iter().map(|one| one.status.code()).collect();
        let done = codes.iter().filter(|code| **code == Some(0)).count();
        assert!(done <= 1, "{codes:?}");
        // If each gave way to another, the token is as it was.
        let live = run(["token", "list", &path, "--json"]).fine().json();
        let live: Vec<&Value> = live.iter().filter(|one| one["standing"] == "live").collect();
        let left: u64 = live.iter().map(|one| one["left"]["calls"].as_u64().unwrap()).sum();
        assert_eq!((live.len(), left), (1, 9), "{codes:?}");
        let id = live[0]["token_id"].as_str().unwrap();
        run(["revoke", &path, id]).fine();
    }
    assert_eq!(home.verify(), 0);
}
