//! Answers that last: standing approvals and what ends them, and a tool that runs unasked for a while.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::claude::denied;
use super::world::{Hooked, claude, with};
use crate::cli::support::run;

/// Asks about each write of the client's own tool.
const ASKS: &str = r#"{"v": 1, "constraints": [
    {"id": "all", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
     "on_fail": "block", "reason": "Within the token."},
    {"id": "writes", "effect": "deny", "subject": {"tool_id": "claude_code.write"},
     "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "Somebody looks."}]}"#;

fn write(project: &str, id: &str, content: &str) -> Value {
    let input = json!({ "file_path": format!("{project}/a.txt"), "content": content });
    claude("PreToolUse", id, "Write", input)
}

fn made(hooked: &Hooked, event: Value) {
    assert_eq!(hooked.hook(&event).fine().out, "");
    let after = with(event, "hook_event_name", json!("PostToolUse"));
    hooked.hook(&with(after, "tool_response", json!({}))).fine();
}

/// An approval for an hour, given before anything untrusted was read, ends with the first untrusted
/// result: that is said before it is signed, the next question says so, and its answer holds on.
#[test]
fn standing_approval_that_untrusted_content_ends_says_so() {
    let (mut hooked, project) = Hooked::rooted(&[]);
    let home = hooked.home.path();
    hooked.go_by(&hooked.home.file("asks.json", ASKS));
    hooked.hold();
    let asked = |id: &str, content: &str| {
        denied(hooked.hook(&write(&project, id, content)));
        let ask = hooked.last();
        assert_eq!(ask["kind"], "ask");
        ask["seq"].to_string()
    };
    let approve = |ask: &str, more: &[&str]| {
        let words = ["approvals", "approve", &home, ask, "--uses", "5", "--for", "1h"];
        run([&words[..], more].concat())
    };
    let first = asked("t1", "one");
    let told = approve(&first, &[]).fine().out;
    assert!(told.contains("up to the first untrusted result"), "{told}");
    made(&hooked, write(&project, "t2", "one"));
    let second = asked("t3", "two");
    let shown = run(["approvals", "show", &home, &second]).fine().out;
    assert!(shown.contains(&format!("the standing approval {first} of this tool")), "{shown}");
    let sets = run(["approvals", "sets", &home]).fine().out;
    assert!(sets.contains("ended by untrusted content"), "{sets}");
    approve(&second, &["--wider"]).failed(2);
    let told = approve(&second, &[]).fine().out;
    assert!(told.contains("whatever untrusted content they read"), "{told}");
    for (id, content) in [("t4", "two"), ("t5", "three")] {
        made(&hooked, write(&project, id, content));
    }
    // In another conversation of the token, too.
    let other = with(write(&project, "t6", "four"), "session_id", json!("another"));
    made(&hooked, other);
    hooked.end();
}

/// A tool runs unasked until its time is over, and then asks again; results that came meanwhile end
/// nothing.
#[test]
fn allowed_tool_runs_unasked_until_its_end() {
    let hooked = Hooked::new("claude-code", &[]);
    let home = hooked.home.path();
    let send = |n: u64| claude("PreToolUse", &format!("t{n}"), "SendMessage", json!({ "to": n }));
    denied(hooked.hook(&send(0)));
    assert_eq!(hooked.last()["kind"], "ask");
    let allow = |tool: &str, life: &str| {
        run(["policy", "allow", &home, tool, "--agent", "coder", "--for", life])
    };
    let began = Instant::now();
    let said = allow("claude_code:SendMessage", "6s").fine().out;
    assert!(said.contains("claude_code:SendMessage (claude_code.send_message) unasked"), "{said}");
    for n in 1..=12 {
        made(&hooked, send(n));
    }
    let policies = hooked.of_kind("policy").len();
    std::thread::sleep(Duration::from_millis(6_500).saturating_sub(began.elapsed()));
    denied(hooked.hook(&send(13)));
    assert_eq!(hooked.last()["kind"], "ask");
    // Once more, for another: what is over goes out of the document.
    run(["policy", "allow", &home, "claude_code.cron_create", "--agent", "coder", "--for", "1h"])
        .fine();
    let document = run(["policy", "show", &home]).fine().out;
    assert!(document.contains("allow-until/coder/claude_code.cron_create"), "{document}");
    assert!(!document.contains("send_message"), "{document}");
    // Again it is the same constraint with another end, and another agent's is another one.
    run(["policy", "allow", &home, "claude_code.cron_create", "--agent", "coder", "--for", "2h"])
        .fine();
    assert_eq!(run(["policy", "show", &home]).fine().out.matches("allow-until/").count(), 1);
    assert_eq!(hooked.of_kind("policy").len(), policies + 2);
    denied(hooked.hook(&send(14)));
    hooked.end();
}

/// What a person must see each time, and what is no matter of an allow, is refused before anything is
/// signed.
#[test]
fn tools_that_need_a_person_are_never_allowed_for_a_while() {
    let hooked = Hooked::new("claude-code", &["--class", "irreversible=Gone"]);
    let home = hooked.home.path();
    assert_eq!(hooked.set_up(&["--tool", "Gone"]).code, 0);
    let before = hooked.home.log().len();
    for (tool, life, why) in [
        ("claude_code:Bash", "1h", "runs what it is given"),
        ("claude_code.other", "1h", "runs what it is given"),
        ("claude_code:Gone", "1h", "can't be undone"),
        ("claude_code:Read", "1h", "runs unasked already, by read"),
        ("claude_code.sendmessage", "1h", "did you mean claude_code.send_message?"),
        ("claude_code:SendMessage", "25h", "a day at most"),
    ] {
        let refused = run(["policy", "allow", &home, tool, "--agent", "coder", "--for", life]);
        assert_eq!(refused.code, 2, "{tool}: {}", refused.err);
        assert!(refused.err.contains(why), "{tool}: {}", refused.err);
    }
    // Elevated by its risk, whatever its class.
    let risky = run(["policy", "show", &home]).fine().out.replace(
        r#""risk_elevated":"#,
        r#""risk":{"claude_code.send_message":99},"risk_elevated":"#,
    );
    hooked.go_by(&hooked.home.file("risky.json", &risky));
    let refused = run([
        "policy",
        "allow",
        &home,
        "claude_code.send_message",
        "--agent",
        "coder",
        "--for",
        "1h",
    ]);
    assert!(refused.code == 2 && refused.err.contains("risk.elevated"), "{}", refused.err);
    assert_eq!(hooked.home.log().len(), before + 1, "the policy that was set here");
    hooked.end();
}
