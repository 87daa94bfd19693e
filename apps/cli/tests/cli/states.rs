//! `state`.

use serde_json::{Value, json};

use crate::cli::support::{ECHO, Run, TestHome, is_hash, reason, run};

fn propose(home: &TestHome, token: &str, words: &[&str]) -> Run {
    let path = home.path();
    let args = ["state", "propose", &path, "--agent", "a", "--token", token];
    run(args.iter().chain(words))
}

fn show(home: &TestHome) -> Vec<Value> {
    run(["state", "show", &home.path(), "--json"]).fine().json()
}

#[test]
fn a_proposal_moves_the_head() {
    let home = TestHome::new();
    let id = home.worker("a");
    let words = ["goal.topic=\"b\\u001bees\"", "goal.pages=12", "goal.deep={\"x\":[null,1.5]}"];
    let made = propose(&home, &id, &[&words[..], &["--json"]].concat()).fine().one();
    assert!(is_hash(&made["snapshot"]) && made["agent"] == "a");
    let state = show(&home).remove(0);
    assert_eq!((&state["agent"], &state["number"]), (&json!("a"), &json!(1)));
    assert_eq!(state["snapshot"], made["snapshot"]);
    let facts = json!({"goal.topic": "b\u{1b}ees", "goal.pages": 12,
        "goal.deep": {"x": [null, 1.5]}});
    assert_eq!(state["facts"], facts);
    let record = &home.log()[usize::try_from(made["record"].as_u64().unwrap()).unwrap()];
    assert_eq!((&record["kind"], &record["writer"]), (&json!("state"), &json!("agent")));
    assert_eq!(record["snapshot"], made["snapshot"]);
    assert_eq!(record["set"], json!(["goal.deep", "goal.pages", "goal.topic"]));
    assert_eq!(record["used"]["calls"], 1);
    let base = made["snapshot"].as_str().unwrap();
    let text = propose(&home, &id, &["--base", base, "--remove", "goal.deep"]).fine().out;
    assert!(text.starts_with("snapshot ") && text.contains(" by record "), "{text}");
    let shown = run(["state", "show", &home.path(), "--agent", "a"]).fine().out;
    assert!(shown.contains("number 2\n") && shown.contains("  goal.pages = 12\n"), "{shown}");
    assert!(!shown.contains("goal.deep") && !shown.contains('\u{1b}'), "{shown}");
    assert_eq!(run(["state", "show", &home.path(), "--agent", "b"]).fine().out, "");
    let rows = run(["log", "show", &home.path(), "--records"]).fine().out;
    assert!(rows.contains("number 2 by agent: -goal.deep"), "{rows}");
    assert_eq!(home.verify(), 0);
}

#[test]
fn namespaces_have_their_writers() {
    let home = TestHome::new();
    let id = home.worker("a");
    for (writer, fine, refused) in [
        ("agent", "goal.x=1", "fact.x=1"),
        ("user", "goal.y=1", "fact.x=1"),
        ("tool", "fact.x=1", "goal.x=1"),
        ("encoder", "fact.y=1", "goal.x=1"),
    ] {
        propose(&home, &id, &["--as", writer, fine]).fine();
        for key in [refused, "policy.x=1", "constraint.x=1"] {
            let line = propose(&home, &id, &["--as", writer, key]).failed(3).err;
            assert!(line.contains("namespace (411)"), "{line}");
        }
    }
    // Whole or not at all.
    propose(&home, &id, &["goal.new=1", "fact.new=1"]).failed(3);
    let state = show(&home).remove(0);
    assert_eq!(state["number"], 4);
    assert!(state["facts"]["goal.new"].is_null());
    let refusals: Vec<_> = home.log().into_iter().filter(|r| r["kind"] == "refusal").collect();
    assert_eq!(refusals.len(), 13);
    assert!(refusals.iter().all(|refusal| refusal["reason"] == "namespace"));
    assert_eq!(home.verify(), 0);
}

#[test]
fn a_base_must_still_be_the_head() {
    let home = TestHome::new();
    let id = home.worker("a");
    propose(&home, &id, &["goal.x=1"]).fine();
    let head = show(&home)[0]["snapshot"].as_str().unwrap().to_owned();
    propose(&home, &id, &["--base", &head, "goal.x=2"]).fine();
    let line = propose(&home, &id, &["--base", &head, "goal.x=3"]).failed(3).err;
    assert!(line.contains("stale_snapshot (414)"), "{line}");
    let state = show(&home).remove(0);
    assert!(line.contains(state["snapshot"].as_str().unwrap()), "{line}");
    assert_eq!((&state["number"], &state["facts"]["goal.x"]), (&json!(2), &json!(2)));
}

#[test]
fn words_that_are_not_of_their_form_are_2() {
    let home = TestHome::new();
    let id = home.worker("a");
    let before = home.log().len();
    let cases: [&[&str]; 13] = [
        &[],
        &["goal.x"],
        &["goal.x="],
        &["goal.x=bees"],
        &["goal.x={"],
        &["goal.=1"],
        &["agent.x=1"],
        &["goal.X=1"],
        &["goal.x=1", "goal.x=2"],
        &["goal.x=1", "--remove", "goal.x"],
        &["--remove", "x"],
        &["--base", "12", "goal.x=1"],
        &["--as", "nobody", "goal.x=1"],
    ];
    for words in cases {
        let run = propose(&home, &id, words);
        assert_eq!((run.code, &*run.out), (2, ""), "{words:?}: {}", run.err);
    }
    assert_eq!(home.log().len(), before);
}

#[test]
fn a_state_is_shown_and_changed_beside_the_holder() {
    let home = TestHome::new();
    let id = home.worker("a");
    propose(&home, &id, &["goal.x=1"]).fine();
    let mut holder = home.hold("a", &id);
    assert_eq!(holder.ask(ECHO)["status"], "ok");
    assert_eq!(show(&home)[0]["facts"], json!({"goal.x": 1}));
    let base = show(&home)[0]["snapshot"].as_str().unwrap().to_owned();
    propose(&home, &id, &["--as", "tool", "fact.y=2", "--base", &base]).fine();
    assert_eq!(show(&home)[0]["facts"], json!({"fact.y": 2, "goal.x": 1}));
    // It is another head now.
    propose(&home, &id, &["goal.x=2", "--base", &base]).failed(3);
    assert_eq!(holder.ask(ECHO)["status"], "ok");
    assert_eq!(holder.end(), 0);
    run(["state", "show", &home.text_beside("nowhere")]).failed(4);
    // Another's token opens nothing.
    let other = home.worker("b");
    propose(&home, &other, &["goal.x=2"]).failed(3);
}

/// What stands in a state decides calls.
#[test]
fn a_policy_asks_about_the_state() {
    let home = TestHome::new();
    let id = home.worker("a");
    let text = json!({"v": 1, "constraints": [{
        "id": "echo.when-writing", "effect": "allow", "subject": {"tool_id": "echo"},
        "when": {"op": "eq", "args": ["goal.mode", "write"]}, "on_fail": "block",
        "reason": "Only while writing.",
    }]});
    run(["policy", "set", &home.path(), &home.file("p", &text.to_string())]).fine();
    assert_eq!(reason(&home.call("a", &id, ECHO.as_bytes())[0]), "denied");
    propose(&home, &id, &["goal.mode=\"write\""]).fine();
    assert_eq!(home.call("a", &id, ECHO.as_bytes())[0]["status"], "ok");
    let head = show(&home)[0]["snapshot"].clone();
    let log = home.log();
    let intent = log.iter().find(|record| record["kind"] == "intent").unwrap();
    assert!(intent["state_snapshot_id"] == head || intent["head"] == head, "{intent}");
    propose(&home, &id, &["--remove", "goal.mode"]).fine();
    assert_eq!(reason(&home.call("a", &id, ECHO.as_bytes())[0]), "denied");
    assert_eq!(home.verify(), 0);
}
