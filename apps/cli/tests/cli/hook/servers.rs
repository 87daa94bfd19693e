//! A hook whose server ends between two uses: what the conversation was given, and what waits for a
//! person, is as before.

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::cli::hook::world::{Hooked, claude, with};
use crate::cli::support::{lives, run, until};

/// How a server ends.
const ENDS: [&str; 4] = ["a signal", "a command", "a kill", "itself"];

fn end_server(hooked: &Hooked, by: &str) {
    let server = hooked.home.server().expect("it is served");
    match by {
        "a signal" => kill_process(server, Signal::TERM).unwrap(),
        "a command" => assert_eq!(run(["serve", &hooked.home.path(), "--stop"]).code, 0),
        "a kill" => kill_process(server, Signal::KILL).unwrap(),
        _ => {}
    }
    until("the server has gone", || !lives(server));
}

fn fetch(event: &str, id: &str) -> Value {
    claude(event, id, "WebFetch", json!({ "url": "https://example.com/", "prompt": "p" }))
}

/// A conversation that has fetched a page is judged so with the next server, and so is the next
/// conversation by its token.
#[test]
fn label_of_a_conversation_outlives_each_end_of_its_server() {
    for by in ENDS {
        let hooked = Hooked::loose("claude-code", &[]);
        let idle = if by == "itself" { "1s" } else { "10m" };
        assert_eq!(run(["config", &hooked.home.path(), "--idle", idle]).code, 0);
        let label = || hooked.of_kind("intent").last().unwrap()["label"].clone();
        hooked.hook(&fetch("PreToolUse", "toolu_01")).fine();
        assert_eq!(label(), 0, "{by}");
        let after = with(fetch("PostToolUse", "toolu_01"), "tool_response", json!("a page"));
        hooked.hook(&after).fine();
        end_server(&hooked, by);
        hooked.hook(&fetch("PreToolUse", "toolu_02")).fine();
        assert_ne!(label(), 0, "{by}");
        let after = with(fetch("PostToolUse", "toolu_02"), "tool_response", json!("a page"));
        hooked.hook(&after).fine();
        end_server(&hooked, by);
        let other = with(fetch("PreToolUse", "toolu_03"), "session_id", json!("another"));
        hooked.hook(&other).fine();
        assert_ne!(label(), 0, "{by}, in another conversation");
        let server = hooked.home.server().unwrap();
        kill_process(server, Signal::TERM).unwrap();
        until("it ends", || !lives(server));
        hooked.end();
    }
}

/// A page is being fetched as the server ends: the use ends as unknown, and what the client reports
/// then is on record as late, with the label of what it brought. It is reported by any later server,
/// once.
#[test]
fn use_that_outlives_its_server_is_reported_late() {
    for by in ["a signal", "a command", "a kill"] {
        let hooked = Hooked::loose("claude-code", &[]);
        hooked.hook(&fetch("PreToolUse", "toolu_01")).fine();
        let intent = hooked.of_kind("intent").last().unwrap()["seq"].clone();
        end_server(&hooked, by);
        let after = with(fetch("PostToolUse", "toolu_01"), "tool_response", json!("a page"));
        hooked.hook(&after).fine();
        let reports = hooked.of_kind("late");
        assert_eq!(reports.len(), 1, "{by}");
        let report = &reports[0];
        assert_eq!((&report["intent"], &report["status"]), (&intent, &json!("ok")), "{by}");
        assert_eq!(report["label"], 1, "{by}");
        hooked.hook(&fetch("PreToolUse", "toolu_02")).fine();
        assert_ne!(hooked.of_kind("intent").last().unwrap()["label"], 0, "{by}");
        // What is reported again is no use.
        assert_ne!(hooked.hook(&after).code, 0, "{by}");
        assert_eq!(hooked.of_kind("late").len(), 1, "{by}");
        hooked.end();
    }
}
