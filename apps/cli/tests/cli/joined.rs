//! `learn` under a policy that asks: what it proposes is joined with that policy.

use serde_json::{Value, json};

use crate::cli::approvals::{ask, asking, write};
use crate::cli::support::{TestHome, reason, run};

/// A home whose policy asks before each write: three were approved, each in a session of its own,
/// and ran; one was denied.
fn answered() -> (TestHome, String, u64) {
    let (home, token) = asking();
    let path = home.path();
    for n in 1..=3 {
        let call = call_of(n);
        let asked = ask(&home.call("a", &token, call.as_bytes())[0]);
        run(["approvals", "approve", &path, &asked]).fine();
        assert_eq!(home.call("a", &token, call.as_bytes())[0]["status"], "ok");
    }
    let denied = ask(&home.call("a", &token, call_of(4).as_bytes())[0]);
    run(["approvals", "deny", &path, &denied]).fine();
    (home, token, denied.parse().unwrap())
}

fn call_of(n: u32) -> String {
    write(&format!("notes/{n}.md"), "same").replace("}}", ", \"parents\": true}}")
}

fn learn(home: &TestHome, flags: &[&str]) -> Value {
    let home = home.path();
    let all = [&["learn", &home, "--json", "--refused", "40"][..], flags].concat();
    let run = run(all);
    assert_eq!(run.code, 0, "{}", run.err);
    run.one()
}

fn count(proposal: &Value, kind: &str) -> u64 {
    proposal["preview"][kind]["count"].as_u64().unwrap()
}

#[test]
fn learned_policy_keeps_asking_and_keeps_a_denial() {
    let (home, _, denied) = answered();
    let proposal = learn(&home, &[]);
    assert_eq!(proposal["preview"]["loosened"], json!([]));
    assert_eq!(count(&proposal, "allowed"), 0, "{proposal}");
    let refused = &proposal["preview"]["refused"];
    assert_eq!(refused["calls"][0]["record"], denied);
    assert!(count(&proposal, "asked") >= 3, "{proposal}");
    // Three ran, each after a person's approval; the denied one did not.
    assert_eq!((&proposal["preview"]["asked"]["ran"], &refused["ran"]), (&json!(3), &json!(0)));
    // So it is where it is in force.
    let applied = learn(&home, &["--apply"]);
    let token = applied["applied"]["tokens"][0]["token_id"].as_str().unwrap().to_owned();
    assert_eq!(reason(&home.call("a", &token, call_of(5).as_bytes())[0]), "asked");
    assert_eq!(reason(&home.call("a", &token, call_of(4).as_bytes())[0]), "denied");
    // Learned once more it is the same.
    assert_eq!(count(&learn(&home, &[]), "allowed"), 0);
}

#[test]
fn loosened_constraint_is_named_call_by_call() {
    let (home, _, denied) = answered();
    let name = format!("denied/{denied}");
    let of = |proposal: &Value, was: &str| {
        let all = proposal["preview"]["loosened"].as_array().unwrap();
        all.iter().filter(|one| one["was"] == was).count()
    };
    let asks = learn(&home, &["--loosen", "writes"]);
    assert!(of(&asks, "ask") >= 3, "{asks}");
    assert_eq!(of(&asks, "denied by a person"), 0);
    let one = learn(&home, &["--loosen", &name]);
    assert_eq!((of(&one, "ask"), count(&one, "allowed")), (0, 0), "it asks: {one}");
    let both = learn(&home, &["--loosen", "writes", "--loosen", &name]);
    assert_eq!(of(&both, "denied by a person"), 1);
    let text =
        run(["learn", &home.path(), "--loosen", "writes", "--loosen", &name, "--refused", "40"])
            .out;
    let line = format!("    record {denied}  a  fs.write: denied by a person -> allow");
    assert!(text.lines().any(|said| said == line), "{text}");
    assert!(text.contains("fs.write: ask -> allow"), "{text}");
    // A name that is none is a mistake, and says which there are.
    let wrong = run(["learn", &home.path(), "--loosen", "write"]).failed(2);
    assert!(wrong.err.contains(&name) && wrong.err.contains("writes"), "{}", wrong.err);
}

/// Writes ran; then a policy was put in force that allows reads alone, and bounds them.
#[test]
fn learned_policy_keeps_a_default_denial_and_what_is_bounded() {
    let home = TestHome::new();
    let path = home.path();
    let allow = |id: &str, tool: &str, more: &str| {
        format!(
            r#"{{"id": "{id}", "effect": "allow", "subject": {{"tool_id": "{tool}"}},
                "when": {{"op": "all", "args": []}}, "on_fail": "block",
                "reason": "It may."{more}}}"#
        )
    };
    let put = |name: &str, constraints: &[String]| {
        let all = constraints.join(", ");
        let file =
            home.file(name, &format!(r#"{{"v": 1, "constraints": [{all}], "params": {{}}}}"#));
        run(["policy", "set", &path, &file]).fine();
    };
    put("wide.json", &[allow("writes", "fs.write", ""), allow("reads", "fs.read", "")]);
    let flags = ["--tool", "fs.write,fs.read", "--read", "workspace", "--write", "workspace"];
    let token = home.token("a", &flags);
    let text = "x".repeat(500);
    assert_eq!(home.call("a", &token, write("a.txt", &text).as_bytes())[0]["status"], "ok");
    let read = r#"{"tool_id": "fs.read", "args": {"path": "a.txt"}}"#;
    assert_eq!(home.call("a", &token, read.as_bytes())[0]["status"], "ok");
    let cap = r#", "obligations": [{"type": "result_cap", "bytes": 64}]"#;
    put("tight.json", &[allow("reads", "fs.read", cap)]);
    let proposal = learn(&home, &["--apply"]);
    assert_eq!(proposal["preview"]["loosened"], json!([]), "{proposal}");
    let token = proposal["applied"]["tokens"][0]["token_id"].as_str().unwrap().to_owned();
    let call = |line: &str| home.call("a", &token, line.as_bytes()).remove(0);
    assert_eq!(reason(&call(&write("a.txt", &text))), "denied");
    let read = call(read);
    assert!(read["result"]["text"].as_str().unwrap().len() <= 64, "{read}");
    // The operator says its name to lift it, and sees that it was denied.
    put("tight.json", &[allow("reads", "fs.read", cap)]);
    let loosened = learn(&home, &["--loosen", "kept/default/fs.write"]);
    let was = loosened["preview"]["loosened"].as_array().unwrap();
    assert!(was.iter().all(|one| one["was"] == "deny"), "{loosened}");
    assert_eq!(was.len(), 1, "{loosened}");
}
