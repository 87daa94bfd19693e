//! Tools that the list does not have, sub-agents, and uses that the client itself does not make.

use serde_json::{Value, json};

use super::claude::denied;
use super::world::{Hooked, claude, gemini, with};
use crate::cli::support::run;

fn workflow(id: &str) -> Value {
    claude("PreToolUse", id, "Workflow", json!({ "script": "x" }))
}

/// A name that the list does not have: the class is no matter of its arguments, it asks each time, and
/// no standing approval is to be had.
#[test]
fn unlisted_tool_asks_each_time_under_its_own_name() {
    let hooked = Hooked::new("claude-code", &[]);
    let home = hooked.home.path();
    for (n, event) in [
        workflow("t0"),
        claude("PreToolUse", "t1", "Nothing", json!({})),
        claude("PreToolUse", "t2", "read_file", json!({ "file_path": "/tmp/project/a" })),
        claude("PreToolUse", "t3", &"x".repeat(2_000), json!({})),
    ]
    .iter()
    .enumerate()
    {
        let reason = denied(hooked.hook(event));
        assert!(reason.contains("asked (403)"), "{n}: {reason}");
        let name = event["tool_name"].as_str().unwrap();
        assert!(reason.starts_with(&format!("syscap refused {name}: ")), "{reason}");
        let asked = hooked.last();
        assert_eq!(
            (&asked["kind"], &asked["tool_id"]),
            (&json!("ask"), &json!("claude_code.other"))
        );
    }
    let ask = hooked.of_kind("ask")[0]["seq"].to_string();
    let shown = run(["approvals", "show", &home, &ask]).fine().out;
    assert!(shown.contains("claude_code:Workflow (claude_code.other)"), "{shown}");
    run(["approvals", "approve", &home, &ask, "--uses", "2", "--for", "1h"]).failed(2);
    run(["approvals", "approve", &home, &ask]).fine();
    assert_eq!(hooked.hook(&workflow("t4")).fine().out, "");
    let after = with(workflow("t4"), "hook_event_name", json!("PostToolUse"));
    hooked.hook(&with(after, "tool_response", json!("done"))).fine();
    assert_eq!(
        (&hooked.last()["kind"], &hooked.last()["status"]),
        (&json!("outcome"), &json!("ok"))
    );
    denied(hooked.hook(&workflow("t5")));
    assert_eq!(hooked.last()["kind"], "ask");
    let log = run(["log", "show", &home]).fine().out;
    assert!(log.contains("claude_code:Workflow("), "{log}");
    // By the operator's word it is a tool of its own.
    assert_eq!(hooked.set_up(&["--tool", "Workflow"]).code, 0);
    denied(hooked.hook(&workflow("t6")));
    assert_eq!(hooked.last()["tool_id"], "claude_code.spelt.n_cworkflow");
    let shown = run(["approvals", "show", &home, &hooked.last()["seq"].to_string()]).fine().out;
    assert!(shown.contains("claude_code:Workflow (claude_code.spelt.n_cworkflow)"), "{shown}");
    hooked.end();
}

/// Tools that the list has since lately run as their class says.
#[test]
fn present_tools_run_by_their_class() {
    let hooked = Hooked::new("claude-code", &[]);
    for (n, tool) in ["Agent", "TaskCreate", "ToolSearch", "EnterWorktree"].iter().enumerate() {
        let event = claude("PreToolUse", &format!("t{n}"), tool, json!({ "subject": "x" }));
        assert_eq!(hooked.hook(&event).fine().out, "", "{tool}");
        assert_eq!(hooked.last()["kind"], "intent", "{tool}");
    }
    let log =
        run(["log", "show", &hooked.home.path(), "--tool", "claude_code:TaskCreate"]).fine().out;
    assert!(log.contains("claude_code:TaskCreate(subject"), "{log}");
    assert_eq!(log.lines().count(), 2, "{log}");
    hooked.end();
}

/// The token of a home that was set up before the list had a tool: the set-up goes on.
#[test]
fn token_without_a_present_tool_names_the_set_up() {
    let mut hooked = Hooked::new("claude-code", &[]);
    let narrow = hooked.home.token("coder", &["--tool", "claude_code.read"]);
    hooked.flags = ["--token".to_owned(), narrow].to_vec();
    for (n, tool) in ["TaskCreate", "Workflow"].iter().enumerate() {
        let refused = hooked.hook(&claude("PreToolUse", &format!("t{n}"), tool, json!({})));
        assert!(refused.err.contains(" --setup"), "{}", refused.err);
        assert!(denied(refused).contains("not_granted (206)"));
    }
    hooked.end();
}

/// A use that the client's user, or its own rules, refused: no result is reported, and the batch ends.
#[test]
fn use_that_the_client_refuses_is_told_as_not_made() {
    let hooked = Hooked::new("claude-code", &[]);
    let write = |id: &str| {
        let input = json!({ "file_path": "/tmp/project/a", "content": "x" });
        claude("PreToolUse", id, "Write", input)
    };
    for id in ["made", "refused"] {
        assert_eq!(hooked.hook(&write(id)).fine().out, "");
    }
    let made = with(write("made"), "hook_event_name", json!("PostToolUse"));
    hooked.hook(&with(made, "tool_response", json!({}))).fine();
    let call = |id: &str| {
        let mut call = write(id);
        call["tool_response"] = json!("Claude requested permissions to write, but was not granted");
        call
    };
    let batch = json!({
        "session_id": write("made")["session_id"], "cwd": "/tmp/project",
        "hook_event_name": "PostToolBatch",
        "tool_calls": [call("made"), call("refused"), call("never-asked-about")],
    });
    hooked.hook(&batch).fine();
    let outcomes = hooked.of_kind("outcome");
    let seen: Vec<_> =
        outcomes.iter().map(|one| (one["reason"].clone(), one["tx"].clone())).collect();
    let expected = [(Value::Null, json!("committed")), (json!("cancelled"), json!("no_op"))];
    assert_eq!(seen, expected);
    let whole =
        run(["log", "show", &hooked.home.path(), &outcomes[1]["seq"].to_string()]).fine().out;
    assert!(whole.contains("not made: Claude requested permissions"), "{whole}");
    // It is over once, and the same batch changes nothing.
    let before = hooked.home.log().len();
    hooked.hook(&batch).fine();
    assert_eq!(hooked.home.log().len(), before);
    hooked.end();
}

/// The client's own notices are nobody's words; a sub-agent's uses stand in their conversation's session.
#[test]
fn sub_agents_are_on_record_and_their_notices_are_no_users_words() {
    let hooked = Hooked::new("claude-code", &[]);
    let said = |text: &str| {
        json!({ "session_id": workflow("")["session_id"], "hook_event_name": "UserPromptSubmit",
            "prompt": text })
    };
    hooked.hook(&said("Go.")).fine();
    hooked.hook(&said("<task-notification>\n<task-id>a1</task-id></task-notification>")).fine();
    assert_eq!(hooked.of_kind("input").len(), 1);
    let read = claude("PreToolUse", "t1", "Read", json!({ "file_path": "/tmp/project/a" }));
    hooked.hook(&read).fine();
    let by = with(with(read, "tool_use_id", json!("t2")), "agent_id", json!("a615ddd78959e1f1e"));
    let by = with(by, "agent_type", json!("general-purpose"));
    hooked.hook(&by).fine();
    let intents = hooked.of_kind("intent");
    assert_eq!(intents[0]["session"], intents[1]["session"]);
    let whole = |n: usize| {
        run(["log", "show", &hooked.home.path(), &intents[n]["seq"].to_string()]).fine().out
    };
    assert!(!whole(0).contains("a615"), "{}", whole(0));
    assert!(whole(1).contains("a615ddd78959e1f1e general-purpose"), "{}", whole(1));
    // However long a name is, it is cut, and stops no use.
    let by = with(with(by, "tool_use_id", json!("t3")), "agent_type", json!("\u{e9}".repeat(99)));
    hooked.hook(&by).fine();
    assert_eq!(hooked.of_kind("intent").len(), 3);
    hooked.end();
}

/// Gemini CLI's spelling of its own and of foreign tools.
#[test]
fn gemini_clis_unlisted_tools_ask() {
    let hooked = Hooked::new("gemini-cli", &[]);
    for (tool, id) in
        [("invoke_agent", "gemini_cli.other"), ("mcp_docs_find", "gemini_cli.tool.mcp_docs_find")]
    {
        let said = hooked.hook(&gemini("BeforeTool", tool, json!({}))).one();
        assert_eq!(said["decision"], "deny", "{tool}");
        assert_eq!(hooked.last()["tool_id"], id);
    }
    hooked.end();
}
