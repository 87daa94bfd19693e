//! Claude Code: PreToolUse, PostToolUse, PostToolUseFailure.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use super::world::{Hooked, claude, with};
use crate::cli::erase::found;
use crate::cli::support::{Run, run, syscap};

fn read(event: &str, id: &str) -> Value {
    claude(event, id, "Read", json!({ "file_path": "/tmp/project/a.txt" }))
}

/// The hook objects, and its reason stands there for the model. For the operator a command may
/// stand on standard error.
pub(super) fn denied(run: Run) -> String {
    let said = run.one();
    assert_eq!(run.code, 0, "{}", run.err);
    let is_command = |line: &str| line.contains(": an operator goes on with: syscap ");
    assert!(run.err.lines().count() <= 1 && run.err.lines().all(is_command), "{}", run.err);
    let said = &said["hookSpecificOutput"];
    assert_eq!(said["hookEventName"], "PreToolUse");
    assert_eq!(said["permissionDecision"], "deny");
    said["permissionDecisionReason"].as_str().unwrap().to_owned()
}

#[test]
fn the_settings_name_the_hook_for_each_event() {
    let hooked = Hooked::loose("claude-code", &["--class", "read=mcp__it's__*"]);
    let settings: Value = serde_json::from_str(&hooked.set_up(&[]).out).unwrap();
    let hooks = settings["hooks"].as_object().unwrap();
    let events: Vec<&String> = hooks.keys().collect();
    let all =
        ["PostToolBatch", "PostToolUse", "PostToolUseFailure", "PreToolUse", "UserPromptSubmit"];
    assert_eq!(events, all);
    for (event, entries) in hooks {
        let of_tool = !["UserPromptSubmit", "PostToolBatch"].contains(&event.as_str());
        let matcher = if of_tool { json!("*") } else { Value::Null };
        assert_eq!(entries[0]["matcher"], matcher);
        let hook = &entries[0]["hooks"][0];
        assert_eq!((&hook["type"], &hook["timeout"]), (&json!("command"), &json!(60)));
        // Afterwards, and of what a user says, nothing is left that could be denied.
        let on_failure = if event == "PreToolUse" { json!("block") } else { Value::Null };
        assert_eq!(hook["onFailure"], on_failure, "{event}");
        let command = hook["command"].as_str().unwrap();
        assert!(command.contains(" hook "), "{command}");
        assert!(command.contains(r"'read=mcp__it'\''s__*'"), "{command}");
    }
    assert_eq!(hooked.of_kind("issue").len(), 2);
    assert_eq!(hooked.of_kind("tools").len(), 2, "the home's own, and the client's, once");
}

fn prompt(said: &str) -> Value {
    json!({
        "hook_event_name": "UserPromptSubmit",
        "session_id": "00893aaf-19fa-41d2-8238-13269b9b3ca0",
        "cwd": "/",
        "prompt": said,
    })
}

/// What the user says stands in the session of the conversation, before what comes of it; the model
/// is told nothing, and the log has no word of it.
#[test]
fn prompt_is_recorded_as_input() {
    let hooked = Hooked::new("claude-code", &[]);
    let long = format!("Please read\n{}", "all of it ".repeat(1_000));
    for said in ["What does Hilda's file say?", &long] {
        assert_eq!(hooked.hook(&prompt(said)).fine().out, "");
    }
    hooked.hook(&read("PreToolUse", "toolu_01")).fine();
    let inputs = hooked.of_kind("input");
    assert_eq!(inputs.len(), 4, "10,012 bytes are three");
    let intent = hooked.last();
    assert_eq!(inputs[0]["session"], intent["session"]);
    assert_eq!((&inputs[0]["agent"], &inputs[0]["label"]), (&json!("coder"), &json!(0)));
    assert!(hooked.home.log().iter().all(|record| !record.to_string().contains("Hilda")));
    let home = hooked.home.path();
    let shown = run(["log", "show", &home, "--agent", "coder"]).fine().out;
    assert!(shown.contains("the user said: What does Hilda's file say?\n"), "{shown}");
    assert!(shown.contains("the user said: Please read all of it all of it"), "{shown}");
    let redacted = run(["log", "show", &home, "--redacted"]).fine().out;
    assert!(!redacted.contains("Hilda") && redacted.contains("the user said something"));
    let seq = inputs[1]["seq"].to_string();
    let whole = run(["log", "show", &home, &seq]).fine().out;
    assert!(whole.contains("  said:\n  | Please read\n  | all of it all of it"), "{whole}");
    hooked.end();
}

/// Nothing is done by what a user says: that it can't be recorded stops nobody, and is told.
#[test]
fn a_prompt_that_cannot_be_recorded_stops_nobody() {
    let hooked = Hooked::new("claude-code", &[]);
    hooked.changes_nothing(1, |hooked| hooked.hook(&prompt(&"x".repeat((1 << 20) + 1))));
    let before = hooked.home.log().len();
    assert_eq!(hooked.hook(&prompt("")).fine().out, "", "a picture alone, say");
    assert_eq!(hooked.home.log().len(), before);
    // Nor that the agent is frozen keeps it off the record.
    assert_eq!(run(["freeze", &hooked.home.path(), "--all"]).code, 0);
    assert_eq!(hooked.hook(&prompt("Stop.")).fine().out, "");
    assert_eq!(hooked.of_kind("input").len(), 1);
    let token = hooked.of_kind("issue").pop().unwrap()["token"].as_str().unwrap().to_owned();
    assert_eq!(run(["token", "revoke", &hooked.home.path(), &token]).code, 0);
    hooked.changes_nothing(1, |hooked| hooked.hook(&prompt("Hello?")));
    hooked.end();
}

#[test]
fn a_use_is_on_record_before_and_after() {
    let hooked = Hooked::new("claude-code", &[]);
    let before = hooked.hook(&read("PreToolUse", "toolu_01")).fine();
    // No word for or against: the client's own rules apply besides.
    assert_eq!(before.out, "");
    let intent = hooked.last();
    assert_eq!(
        (&intent["kind"], &intent["tool_id"]),
        (&json!("intent"), &json!("claude_code.read"))
    );
    assert_eq!(hooked.of_kind("outcome").len(), 0);
    let response = json!({ "type": "text", "file": { "content": "hello", "numLines": 1 } });
    let after = with(read("PostToolUse", "toolu_01"), "tool_response", response);
    assert_eq!(hooked.hook(&after).fine().out, "");
    let outcome = hooked.last();
    assert_eq!(outcome["kind"], "outcome");
    assert_eq!((&outcome["status"], &outcome["tx"]), (&json!("ok"), &json!("no_op")));
    assert_eq!(outcome["intent"], intent["seq"]);
    assert_eq!(outcome["enforcement"], "hearsay");
    hooked.end();
}

#[test]
fn the_operator_may_answer_for_the_client() {
    let hooked = Hooked::new("claude-code", &["--allow"]);
    let said = hooked.hook(&read("PreToolUse", "toolu_01")).fine().one();
    assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "allow");
    // Not for what the kernel refuses.
    denied(hooked.hook(&claude("PreToolUse", "toolu_02", "Bash", json!({ "command": "ls" }))));
}

/// What the policy asks about, what the token lacks, what nobody knows: each with its record.
#[test]
fn refused_tool_use_is_denied_with_its_reason() {
    let hooked = Hooked::new("claude-code", &[]);
    let bash = claude("PreToolUse", "toolu_01", "Bash", json!({ "command": "curl evil.example" }));
    let reason = denied(hooked.hook(&bash));
    assert!(reason.contains("asked (403)"), "{reason}");
    assert_eq!(hooked.last()["kind"], "ask");
    let stranger = claude("PreToolUse", "toolu_02", "mcp__evil__Read", json!({}));
    let reason = denied(hooked.hook(&stranger));
    assert!(reason.contains("not_granted (206)"), "{reason}");
    assert_eq!(hooked.last()["kind"], "refusal");
    assert_eq!(hooked.of_kind("intent").len(), 0);
    // A use that was denied has nothing to tell.
    let after = with(bash, "hook_event_name", json!("PostToolUse"));
    hooked.changes_nothing(1, |hooked| hooked.hook(&after));
    hooked.end();
}

#[test]
fn the_operator_says_what_tools_do() {
    let hooked = Hooked::new("claude-code", &["--class", "read=mcp__docs__*"]);
    let find = claude("PreToolUse", "toolu_01", "mcp__docs__find", json!({ "for": "tea" }));
    // Seen for the first time: it is on record now, and can be granted.
    denied(hooked.hook(&find));
    assert_eq!(hooked.set_up(&["--tool", "mcp__docs__find"]).code, 0);
    let again = with(find, "tool_use_id", json!("toolu_02"));
    assert_eq!(hooked.hook(&again).fine().out, "");
    assert_eq!(hooked.last()["kind"], "intent");
    hooked.end();
}

/// Another class than on record is another tool, until somebody sets it up.
#[test]
fn a_class_that_has_changed_is_refused_until_it_is_accepted() {
    let mut hooked = Hooked::new("claude-code", &[]);
    hooked.flags = ["--class", "read=Bash"].map(str::to_owned).to_vec();
    let bash = |id: &str| claude("PreToolUse", id, "Bash", json!({ "command": "ls" }));
    assert!(denied(hooked.hook(&bash("toolu_01"))).contains("tool_changed ("));
    assert_eq!(hooked.set_up(&[]).code, 0);
    assert_eq!(hooked.hook(&bash("toolu_02")).fine().out, "");
    hooked.end();
}

#[test]
fn a_use_that_failed_did_what_is_not_known() {
    let hooked = Hooked::new("claude-code", &[]);
    let write = |event: &str| {
        claude(event, "toolu_01", "Write", json!({ "file_path": "/tmp/x", "content": "y" }))
    };
    hooked.hook(&write("PreToolUse")).fine();
    let words = "denied, by one of its own words";
    let failed = with(write("PostToolUseFailure"), "error", json!(words));
    hooked.hook(&with(failed, "is_interrupt", json!(false))).fine();
    let outcome = hooked.last();
    assert_eq!((&outcome["reason"], &outcome["tx"]), (&json!("tool_failed"), &json!("unknown")));
    // Its words are kept and erased as a result is.
    assert_eq!(found(&hooked.home, words), 1);
    let record = outcome["seq"].as_u64().unwrap().to_string();
    assert_eq!(run(["erase", &hooked.home.path(), "--record", &record]).code, 0);
    assert_eq!(found(&hooked.home, words), 0);
    hooked.end();
}

#[test]
fn a_use_is_told_of_once() {
    let hooked = Hooked::new("claude-code", &[]);
    let after = with(read("PostToolUse", "toolu_01"), "tool_response", json!({}));
    hooked.changes_nothing(1, |hooked| hooked.hook(&after));
    hooked.hook(&read("PreToolUse", "toolu_01")).fine();
    let other = with(after.clone(), "tool_use_id", json!("toolu_02"));
    hooked.changes_nothing(1, |hooked| hooked.hook(&other));
    let other = with(after.clone(), "session_id", json!("another"));
    hooked.changes_nothing(1, |hooked| hooked.hook(&other));
    hooked.hook(&after).fine();
    hooked.changes_nothing(1, |hooked| hooked.hook(&after));
    // Nor is it let through again.
    assert!(denied(hooked.hook(&read("PreToolUse", "toolu_01"))).contains("has ended already"));
    assert_eq!(hooked.of_kind("outcome").len(), 1);
    hooked.end();
}

/// The client dies in between: the use is given up after its limit, unknown, charged in full.
#[test]
fn a_use_that_nobody_tells_of_is_given_up() {
    let hooked = Hooked::new("claude-code", &["--limit", "1s"]);
    let edit = claude("PreToolUse", "toolu_01", "Edit", json!({ "file_path": "/tmp/x" }));
    hooked.hook(&edit).fine();
    let outcome = hooked.until("outcome", 1);
    assert_eq!(outcome["reason"], "timed_out");
    assert_eq!(outcome["tx"], "unknown");
    let used = |key: &str| outcome["used"][key].as_u64().unwrap();
    assert_eq!((used("calls"), used("wall_us")), (1, 2_000_000));
    // Its place is free.
    hooked.until("late", 1);
    let after = with(edit, "hook_event_name", json!("PostToolUse"));
    hooked.hook(&after).fine();
    // What its client reports all the same is on record.
    assert_eq!(hooked.until("late", 2)["tx"], "committed");
    // The token has more: the next use goes on.
    hooked.hook(&read("PreToolUse", "toolu_02")).fine();
    hooked.end();
}

/// The holder ends: what is out is not known, and the log says so.
#[test]
fn a_holder_that_ends_gives_up_what_is_out() {
    let hooked = Hooked::new("claude-code", &[]);
    let edit = claude("PreToolUse", "toolu_01", "Edit", json!({ "file_path": "/tmp/x" }));
    hooked.hook(&edit).fine();
    let home = hooked.end();
    let outcomes: Vec<Value> =
        home.log().into_iter().filter(|record| record["kind"] == "outcome").collect();
    assert_eq!(outcomes.len(), 1);
    assert_eq!(
        (&outcomes[0]["reason"], &outcomes[0]["tx"]),
        (&json!("cancelled"), &json!("unknown"))
    );
}

/// The token that a use was begun with need not be the newest when it is told of.
#[test]
fn a_use_is_told_of_with_the_token_that_it_was_begun_with() {
    let hooked = Hooked::new("claude-code", &[]);
    hooked.hook(&read("PreToolUse", "toolu_01")).fine();
    assert_eq!(hooked.set_up(&[]).code, 0);
    hooked.hook(&with(read("PostToolUse", "toolu_01"), "tool_response", json!("text"))).fine();
    assert_eq!(hooked.last()["kind"], "outcome");
    hooked.end();
}

/// A token that was issued since for other tools, as a gateway's is, takes nothing away.
#[test]
fn a_use_goes_by_a_token_that_grants_it() {
    let hooked = Hooked::new("claude-code", &[]);
    hooked.home.token("coder", &["--tool", "echo"]);
    hooked.hook(&read("PreToolUse", "toolu_01")).fine();
    assert_eq!(hooked.last()["kind"], "intent");
    hooked.end();
}

/// What it issues outlasts a working day.
#[test]
fn the_token_of_a_set_up_outlasts_a_working_day() {
    let hooked = Hooked::loose("claude-code", &[]);
    let tokens = run(["token", "list", &hooked.home.path(), "--json"]).fine().json();
    assert_eq!(tokens.len(), 1);
    assert_eq!(tokens[0]["left"]["calls"], 100_000);
    assert_eq!(tokens[0]["agent"], "coder");
}

/// No refusal is the end of the road: what the tool counts as, who said no, the command that goes
/// on; and that command does.
#[test]
fn a_refusal_names_the_command_that_goes_on() {
    let hooked = Hooked::new("claude-code", &[]);
    let home = hooked.home.path();
    let stranger = |id: &str| claude("PreToolUse", id, "mcp__evil__read", json!({}));
    let refused = hooked.hook(&stranger("toolu_01"));
    let (_, command) = refused.err.trim_end().split_once(": syscap ").expect("a command");
    let command = command.to_owned();
    let reason = denied(refused);
    assert!(reason.contains("class: external_write"), "{reason}");
    let words = command.split(' ').collect::<Vec<_>>();
    assert_eq!(words[..3], ["token", "reissue", &home]);
    // As printed it grants nothing; its last word is what keeps it from that.
    let (last, words) = words.split_last().expect("a command");
    assert_eq!(*last, "--dry-run");
    run(words).fine();
    let reason = denied(hooked.hook(&stranger("toolu_02")));
    assert_eq!(hooked.last()["kind"], "ask", "granted now: {reason}");
    assert!(reason.contains("constraint: ") && reason.contains("class: external_write"));
    // What an operator says it is stands above what the client thinks.
    let tool = words.last().expect("the tool");
    run(["tools", "class", &home, tool, "irreversible"]).fine();
    let reason = denied(hooked.hook(&stranger("toolu_03")));
    assert!(reason.contains("class: irreversible"), "{reason}");
    hooked.end();
}

/// Tools that start others are known: the set-up grants them.
#[test]
fn agents_and_skills_are_among_the_clients_tools() {
    let hooked = Hooked::new("claude-code", &[]);
    for (n, tool) in ["Task", "Skill"].into_iter().enumerate() {
        let event = claude("PreToolUse", &format!("t{n}"), tool, json!({ "prompt": "x" }));
        assert_eq!(hooked.hook(&event).fine().out, "", "{tool}");
        assert_eq!(hooked.last()["kind"], "intent", "{tool}");
    }
    hooked.end();
}

/// Nothing is started for a home that is not there, and nothing is made.
#[test]
fn a_home_that_is_not_there_is_named_with_the_command_that_makes_one() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("nohome").to_str().unwrap().to_owned();
    let event = read("PreToolUse", "toolu_01").to_string();
    let words = ["hook", &home, "--agent", "coder", "--client", "claude-code"];
    let hooked = crate::cli::support::run_with(words, event.as_bytes());
    assert_eq!((hooked.code, &*hooked.out), (2, ""));
    // That is the model's; the user is told by the next prompt.
    assert!(
        hooked.err.contains("is missing; tell your user") && !hooked.err.contains(&home),
        "{}",
        hooked.err
    );
    let words = ["hook", &home, "--agent", "coder", "--client", "claude-code"];
    let hooked = crate::cli::support::run_with(words, prompt("Hello?").to_string().as_bytes());
    assert_eq!((hooked.code, &*hooked.out), (1, ""));
    assert!(hooked.err.contains(&format!("syscap init {home}")), "{}", hooked.err);
    assert!(!std::path::Path::new(&home).exists());
}

/// A root as `syscap mcp` takes it: the hook's have no names.
#[test]
fn a_named_root_is_a_mistake_in_the_words() {
    let hooked = Hooked::loose("claude-code", &[]);
    let folder = hooked.home.beside("project");
    fs::create_dir(&folder).unwrap();
    let named = format!("workspace={}", folder.display());
    let tokens = hooked.of_kind("mint").len();
    hooked.set_up(&["--root", &named]).failed(2);
    // What is not there at all is a file's error.
    let gone = folder.join("gone").display().to_string();
    for gone in [&gone, &format!("workspace={gone}")] {
        hooked.set_up(&["--root", gone]).failed(1);
    }
    assert_eq!(hooked.of_kind("mint").len(), tokens);
    assert_eq!(hooked.set_up(&["--root", folder.to_str().unwrap()]).code, 0);
}

/// A `claude` that knows no `onFailure` lets the tool run where the hook can't be started.
#[test]
fn claude_before_on_failure_is_warned_of() {
    let hooked = Hooked::loose("claude-code", &[]);
    for (version, is_old) in [("2.1.294", true), ("2.1.295", false)] {
        let folder = hooked.home.beside(version);
        fs::create_dir(&folder).unwrap();
        let program = folder.join("claude");
        fs::write(&program, format!("#!/bin/sh\necho '{version} (Claude Code)'\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let with = |args: &[String]| {
            let path = format!("{}:/usr/bin:/bin", folder.display());
            let mut command = syscap();
            command.args(args).env("PATH", path).current_dir(&folder).env("HOME", &folder);
            Run::of(command.output().unwrap())
        };
        let args = [hooked.args(), vec!["--setup".to_owned(), "--print".to_owned()]].concat();
        let set_up = with(&args);
        assert_eq!(set_up.code, 0, "{}", set_up.err);
        assert_eq!(set_up.err.contains("onFailure"), is_old, "{}", set_up.err);
        let found = |what: &str| {
            let findings = with(&["doctor".to_owned(), "--json".to_owned()]).json();
            let of_it = findings.into_iter().filter(|one| one["what"] == what);
            of_it.map(|one| one["level"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(found("claude"), [if is_old { "bad" } else { "ok" }]);
        // The settings of the folder, as printed and without the field.
        fs::create_dir(folder.join(".claude")).unwrap();
        let file = folder.join(".claude/settings.json");
        for (text, levels) in [
            (set_up.out.clone(), &[][..]),
            (set_up.out.replace(r#","onFailure":"block""#, ""), &["bad"][..]),
        ] {
            fs::write(&file, text).unwrap();
            assert_eq!(found("hook"), levels);
        }
    }
}
