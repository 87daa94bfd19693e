//! What the policy wants a person to approve: waited for, handed to the client, or denied.

use std::{fs, thread, time::Duration};

use serde_json::{Value, json};
use syscap::Runtime;
use syscap::approvals::answer_in_client;
use syscap::format::{ApprovalAnswer, ApprovalChannel, Seq};

use super::claude::denied;
use super::world::{Hooked, claude, gemini};
use crate::cli::support::{Run, run};

fn bash(id: &str) -> Value {
    claude("PreToolUse", id, "Bash", json!({ "command": "curl example.org" }))
}

/// Puts a policy in force by which a client's window counts.
fn with_means(hooked: &Hooked, means: &[&str]) {
    let shown = run(["policy", "show", "preset:standard"]).fine();
    let mut policy: Value = serde_json::from_str(&shown.out).unwrap();
    policy["params"]["client_means"] = json!(means);
    let file = hooked.home.beside("policy.json");
    fs::write(&file, policy.to_string()).unwrap();
    hooked.go_by(file.to_str().unwrap());
}

/// Runs the hook while an operator answers what it asks.
fn while_answered(hooked: &Hooked, event: &Value, verb: &str) -> Run {
    let before = hooked.of_kind("ask").len();
    thread::scope(|scope| {
        let hook = scope.spawn(|| hooked.hook(event));
        let ask = hooked.until("ask", before + 1)["seq"].to_string();
        // It waits: nothing is answered before.
        thread::sleep(Duration::from_millis(300));
        assert!(!hook.is_finished());
        let answered = run(["approvals", verb, &hooked.home.path(), &ask]);
        assert_eq!(answered.code, 0, "{}", answered.err);
        hook.join().unwrap()
    })
}

#[test]
fn a_use_waits_for_the_answer() {
    let hooked = Hooked::new("claude-code", &["--ask", "wait"]);
    let approved = while_answered(&hooked, &bash("toolu_01"), "approve");
    assert_eq!(approved.fine().out, "", "let through: the client's own rules apply besides");
    assert_eq!(hooked.last()["kind"], "intent");
    let refused = while_answered(&hooked, &bash("toolu_02"), "deny");
    assert!(denied(refused).contains("approval_denied (415)"));
    assert_eq!(hooked.of_kind("intent").len(), 1);
    hooked.end();
}

/// What waits for a tool that is set anew meanwhile is decided by the tool as it is then.
#[test]
fn a_use_whose_tool_is_set_anew_goes_by_that() {
    let hooked = Hooked::new("claude-code", &["--ask", "wait"]);
    let class = |class: &str| {
        run(["tools", "class", &hooked.home.path(), "claude_code.web_fetch", class]).fine();
    };
    class("external_write");
    let event = claude("PreToolUse", "toolu_01", "WebFetch", json!({ "url": "https://a.example" }));
    thread::scope(|scope| {
        let hook = scope.spawn(|| hooked.hook(&event));
        hooked.until("ask", 1);
        thread::sleep(Duration::from_millis(300));
        assert!(!hook.is_finished());
        class("read");
        assert_eq!(hook.join().unwrap().fine().out, "");
    });
    assert_eq!((hooked.of_kind("ask").len(), hooked.of_kind("intent").len()), (1, 1));
    hooked.end();
}

/// Where nobody answers in time it is denied, with the command; the question stays.
#[test]
fn a_use_is_denied_where_nobody_answers() {
    let hooked = Hooked::new("claude-code", &["--ask", "wait", "--patience", "6s"]);
    let refused = hooked.hook(&bash("toolu_01"));
    let ask = hooked.of_kind("ask")[0]["seq"].clone();
    let command = format!("syscap approvals approve {} {ask}", hooked.home.path());
    assert!(refused.err.trim_end().ends_with(&command), "{}", refused.err);
    let reason = denied(refused);
    let model = format!("syscap approvals approve HOME {ask};");
    assert!(reason.contains("asked (403)") && reason.contains(&model), "{reason}");
    let listed = run(["approvals", "list", &hooked.home.path()]).fine().out;
    assert!(listed.contains(&command), "{listed}");
    run(["approvals", "approve", &hooked.home.path(), &ask.to_string()]).fine();
    assert_eq!(hooked.hook(&bash("toolu_02")).fine().out, "");
    assert_eq!((hooked.of_kind("ask").len(), hooked.of_kind("intent").len()), (1, 1));
    hooked.end();
}

/// The client's own prompt counts where the policy says so, and is on record as that.
#[test]
fn a_use_becomes_the_clients_prompt_where_the_policy_says_so() {
    let mut hooked = Hooked::loose("claude-code", &["--ask", "prompt", "--patience", "6s"]);
    with_means(&hooked, &["client_prompt"]);
    hooked.hold();
    let said = hooked.hook(&bash("toolu_01")).fine().one();
    assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "ask");
    let approval = &hooked.of_kind("approval")[0];
    assert_eq!(approval["control"]["says"]["means"], "client_prompt", "{approval}");
    assert_eq!(hooked.last()["kind"], "intent");
    hooked.end();
}

/// Its approval is on record before the client asks: a use of the same file that finds one of a
/// hook that came no further is asked about all the same.
#[test]
fn a_prompt_that_nobody_saw_is_no_approval_of_a_file() {
    let (mut hooked, root) = Hooked::rooted(&[]);
    let shown = run(["policy", "show", "preset:coder"]).fine();
    let mut policy: Value = serde_json::from_str(&shown.out).unwrap();
    policy["params"]["client_means"] = json!(["client_prompt"]);
    hooked.go_by(&hooked.home.file("coder.json", &policy.to_string()));
    hooked.hold();
    let write = |id: &str| {
        let input = json!({ "file_path": format!("{root}/.github/a.yml"), "content": "x" });
        hooked.hook(&claude("PreToolUse", id, "Write", input))
    };
    assert!(denied(write("toolu_01")).contains("asked ("));
    let ask = Seq::new(hooked.of_kind("ask")[0]["seq"].as_u64().unwrap());
    let home = hooked.home.beside("home");
    let access = Runtime::connect(&home).unwrap();
    answer_in_client(&home, &access, ask, ApprovalAnswer::Once, ApprovalChannel::ClientPrompt)
        .unwrap();
    access.close().unwrap();
    let said = write("toolu_02").fine().one();
    assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "ask", "{said}");
    assert_eq!(hooked.last()["kind"], "intent");
    hooked.end();
}

/// Not where the policy doesn't, nor for a client that can't be told to ask.
#[test]
fn a_use_is_no_prompt_where_nothing_says_so() {
    for (client, means) in
        [("claude-code", &["elicitation"][..]), ("gemini-cli", &["client_prompt"][..])]
    {
        let mut hooked = Hooked::loose(client, &["--ask", "prompt", "--patience", "6s"]);
        with_means(&hooked, means);
        hooked.hold();
        let event = match client {
            "gemini-cli" => gemini("BeforeTool", "run_shell_command", json!({ "command": "ls" })),
            _ => bash("toolu_01"),
        };
        let said = hooked.hook(&event).out;
        assert!(said.contains("deny") && said.contains("asked (403)"), "{said}");
        assert_eq!(hooked.of_kind("approval").len(), 0);
        assert_eq!(hooked.of_kind("intent").len(), 0);
        hooked.end();
    }
}
