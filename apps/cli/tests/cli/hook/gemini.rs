//! Gemini CLI: BeforeTool, AfterTool.

use serde_json::{Value, json};

use super::world::{Hooked, gemini, with};

#[test]
fn the_settings_name_the_hook_for_each_event() {
    let hooked = Hooked::loose("gemini-cli", &[]);
    let settings: Value = serde_json::from_str(&hooked.set_up(&[]).out).unwrap();
    for event in ["BeforeTool", "AfterTool"] {
        let entry = &settings["hooks"][event][0];
        assert_eq!(
            (&entry["matcher"], &entry["hooks"][0]["timeout"]),
            (&json!(".*"), &json!(60_000))
        );
    }
}

#[test]
fn prompt_is_recorded_as_input() {
    let hooked = Hooked::new("gemini-cli", &[]);
    let settings: Value = serde_json::from_str(&hooked.set_up(&[]).out).unwrap();
    let entry = &settings["hooks"]["BeforeAgent"][0];
    assert_eq!((&entry["matcher"], &entry["hooks"][0]["type"]), (&Value::Null, &json!("command")));
    let event = json!({ "hook_event_name": "BeforeAgent", "session_id": "s1", "prompt": "Hello." });
    assert_eq!(hooked.hook(&event).fine().one(), json!({}));
    assert_eq!(hooked.of_kind("input").len(), 1);
    hooked.end();
}

/// It has no names for uses: equal ones are told apart by their order.
#[test]
fn uses_are_on_record_before_and_after() {
    let hooked = Hooked::new("gemini-cli", &[]);
    let list = |event: &str, path: &str| gemini(event, "list_directory", json!({ "path": path }));
    for path in ["a", "b", "a"] {
        assert_eq!(hooked.hook(&list("BeforeTool", path)).fine().one(), json!({}));
    }
    let intents = hooked.of_kind("intent");
    assert_eq!(intents[0]["tool_id"], "gemini_cli.list_directory");
    let response = json!({ "llmContent": "x", "returnDisplay": "x" });
    for path in ["b", "a", "a"] {
        let after = with(list("AfterTool", path), "tool_response", response.clone());
        assert_eq!(hooked.hook(&after).fine().out, "");
    }
    let outcomes = hooked.of_kind("outcome");
    assert!(outcomes.iter().all(|outcome| outcome["status"] == "ok"));
    let settled: Vec<&Value> = outcomes.iter().map(|outcome| &outcome["intent"]).collect();
    assert_eq!(settled, [&intents[1]["seq"], &intents[0]["seq"], &intents[2]["seq"]]);
    hooked.changes_nothing(1, |hooked| hooked.hook(&list("AfterTool", "a")));
    hooked.end();
}

#[test]
fn refused_tool_use_is_denied_with_its_reason() {
    let hooked = Hooked::new("gemini-cli", &["--allow"]);
    let shell = gemini("BeforeTool", "run_shell_command", json!({ "command": "ls" }));
    let said = hooked.hook(&shell).one();
    assert_eq!(said["decision"], "deny");
    assert!(said["reason"].as_str().unwrap().contains("asked (403)"), "{said}");
    assert_eq!(hooked.last()["kind"], "ask");
    let glob = gemini("BeforeTool", "glob", json!({ "pattern": "*" }));
    assert_eq!(hooked.hook(&glob).fine().one(), json!({ "decision": "allow" }));
    hooked.end();
}

#[test]
fn an_error_that_is_told_of_is_a_failure() {
    let hooked = Hooked::new("gemini-cli", &[]);
    let write =
        |event: &str| gemini(event, "write_file", json!({ "file_path": "a", "content": "b" }));
    hooked.hook(&write("BeforeTool")).fine();
    let response = json!({ "llmContent": "", "error": { "message": "no room" } });
    hooked.hook(&with(write("AfterTool"), "tool_response", response)).fine();
    let outcome = hooked.last();
    assert_eq!((&outcome["reason"], &outcome["tx"]), (&json!("tool_failed"), &json!("unknown")));
    hooked.end();
}
