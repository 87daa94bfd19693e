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
