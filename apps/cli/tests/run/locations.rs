//! Where an approval holds: in the same run later, and in no other place.

use std::fs;

use serde_json::{Value, json};

use super::clients::{CLAUDE, client};
use super::world::{AGENT, PYTHON, World};
use crate::cli::support::{Run, run, run_with};

/// Asks a person about each write.
const POLICY: &str = r#"{"v": 1, "constraints": [
    {"id": "all", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
     "on_fail": "block", "reason": "Fine."},
    {"id": "writes", "effect": "deny", "subject": {"capability": "local_write"},
     "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "Somebody looks at it."},
    {"id": "others", "effect": "deny", "subject": {"capability": "external_write"},
     "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "Somebody looks at it."}
]}"#;

fn under_policy() -> Option<World> {
    let world = World::new()?;
    let file = world.home.beside("policy.json");
    fs::write(&file, POLICY).unwrap();
    run(["policy", "set", &world.home.path(), file.to_str().unwrap()]).fine();
    Some(world)
}

/// The requests that wait, or were approved and have not run.
fn asked(world: &World) -> Vec<Value> {
    run(["approvals", "list", &world.home.path(), "--json", "--all"]).fine().json()
}

fn approve(world: &World, ask: &Value) {
    run(["approvals", "approve", &world.home.path(), &ask["ask"].to_string()]).fine();
}

#[test]
fn approval_in_a_run_holds_in_a_later_run_of_the_same_place_alone() {
    let Some(world) = under_policy() else { return };
    let (home, work) = (world.home.path(), world.home.text_beside("work"));
    let (other, state) = (world.home.text_beside("other"), world.home.text_beside("state"));
    for folder in [&other, &state] {
        fs::create_dir(folder).unwrap();
    }
    let code = format!(
        "{CLAUDE}
file = dict(file_path={:?}, content='x')
before = hook('PreToolUse', 'Write', 'u%d' % time.time_ns(), file)
print(before.returncode, 'deny' in before.stdout)",
        format!("{work}/a.txt")
    );
    let program = client(&world, "claude", &code);
    let made = |workspace: &str, more: &[&str]| -> bool {
        let base = ["run", &home, "--agent", AGENT, "--hook", "--ask deny", "--workspace"];
        let ends = ["--", program.as_str()];
        let ran = run(base.into_iter().chain([workspace]).chain(more.iter().copied()).chain(ends));
        assert_eq!(ran.code, 0, "{}", ran.err);
        match &*ran.out {
            "0 False\n" => true,
            "0 True\n" | "2 False\n" => false,
            other => panic!("{other}{}", ran.err),
        }
    };
    assert!(!made(&work, &[]));
    let [ask] = &asked(&world)[..] else { panic!() };
    assert_eq!(ask["location"], format!("run in {work}; network none"));
    approve(&world, ask);
    // One token for all, as `--token` or equal roots have it.
    let log = world.home.log();
    let issued = log.iter().rev().find(|record| record["kind"] == "issue").unwrap();
    let token = issued["token"].as_str().unwrap();
    let cases: [(&str, &[&str], &str); 6] = [
        (&other, &["--token", token], &format!("run in {other}; network none")),
        (&work, &["--ro", "/etc/hostname"], "; reads /etc/hostname; network none"),
        (&work, &["--rw", &other], &format!("; writes {other}; network none")),
        (&work, &["--state", &state], &format!("; state {state}; network none")),
        (&work, &["--net", "loopback", "--token", token], "; network loopback"),
        (&work, &["--env", "Z=1", "--env", "A=x"], "; network none; variables A Z"),
    ];
    for (n, (workspace, more, ends)) in cases.into_iter().enumerate() {
        assert!(!made(workspace, more), "{more:?}");
        let all = asked(&world);
        assert_eq!(all.len(), n + 2, "{more:?}");
        let new = all.last().unwrap();
        assert!(new["location"].as_str().unwrap().ends_with(ends), "{new}");
        let shown = run(["approvals", "show", &home, &new["ask"].to_string(), "--json"]);
        let shown = &shown.fine().json()[0];
        assert_eq!(shown["elsewhere"].as_array().unwrap().len(), n + 1);
    }
    // Values are not told, and make no difference; nor does the order of options.
    assert!(!made(&work, &["--env", "A=y", "--env", "Z=2"]));
    assert_eq!(asked(&world).len(), 7);
    assert!(made(&work, &[]));
    assert!(!made(&work, &[]));
    assert_eq!(world.home.verify(), 0);
}

/// Calls the tool `look` of a server that is started with these words; the answer.
fn calls(world: &World, words: &[&str]) -> Run {
    let home = world.home.path();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"}}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "look", "arguments": {"what": "cwd"}}});
    let started = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let base = ["mcp", &home, "--agent", AGENT, "--name", "db", "--class", "external_write=look"];
    let all = base.iter().chain(words);
    run_with(all, format!("{hello}\n{started}\n{call}\n").as_bytes())
}

fn was_made(ran: &Run) -> bool {
    assert_eq!(ran.code, 0, "{}", ran.err);
    let answer = ran.out.lines().find(|line| line.contains("\"id\":2")).unwrap();
    let answer: Value = serde_json::from_str(answer).unwrap();
    answer["result"]["isError"] != true && answer["result"]["content"].is_array()
}

#[test]
fn approval_of_a_servers_call_is_none_for_another_server_of_the_name() {
    const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run/server.py");
    let Some(world) = under_policy() else { return };
    let (one, two) = (world.home.text_beside("one"), world.home.text_beside("two"));
    for folder in [&one, &two] {
        fs::create_dir(folder).unwrap();
    }
    let staging: &[&str] = &["--cwd", &one, "--", PYTHON, SERVER, "staging"];
    assert!(!was_made(&calls(&world, staging)));
    let [ask] = &asked(&world)[..] else { panic!() };
    assert_eq!(ask["location"], format!("server {PYTHON} {SERVER} staging; folder {one}"));
    approve(&world, ask);
    let others: [&[&str]; 4] = [
        &["--cwd", &one, "--", PYTHON, SERVER, "prod"],
        &["--cwd", &two, "--", PYTHON, SERVER, "staging"],
        &["--cwd", &one, "--env", "DB=prod", "--", PYTHON, SERVER, "staging"],
        &["--cwd", &one, "--unhidden", "db", "--", PYTHON, SERVER, "staging"],
    ];
    for (n, words) in others.into_iter().enumerate() {
        assert!(!was_made(&calls(&world, words)), "{words:?}");
        assert_eq!(asked(&world).len(), n + 2, "{words:?}");
    }
    assert!(was_made(&calls(&world, staging)));
    assert_eq!(world.home.verify(), 0);
}
