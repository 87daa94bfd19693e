//! A home that a process holds.

use std::fs;

use serde_json::json;

use crate::cli::support::{ECHO, TestHome, reason, run};

/// What only reads works beside the holder, and so does all else: it is asked of the holder.
#[test]
fn a_held_home_is_used_beside_its_holder() {
    let home = TestHome::new();
    let id = home.worker("a");
    let mut holder = home.hold("a", &id);
    let answer = holder.ask(ECHO);
    let path = home.path();
    let log = home.log();
    assert_eq!(log.last().unwrap()["leaf"], answer["receipt"]["outcome_leaf"]);
    let report = run(["verify", &path, "--json"]).fine().one();
    assert_eq!((&report["verdict"], &report["end"]), (&"sound".into(), &"live".into()));
    let shown = run(["token", "show", &path, &id, "--json"]).fine().one();
    assert_eq!(shown["budget"]["calls"]["used"], 1);
    assert_eq!(run(["token", "list", &path]).fine().out.lines().count(), 1);
    assert_eq!(run(["policy", "show", &path]).fine().code, 0);
    run(["policy", "replay", &path, "--against", "preset:standard"]).fine();
    assert_eq!(run(["doctor", &path]).code, 0);
    let out = home.text_beside("out");
    run(["log", "export", &path, "--out", &out]).fine();
    // An export of a log that goes on has no end.
    assert_eq!(run(["verify", &out]).code, 11);
    let other = home.token("b", &["--tool", "echo"]);
    let beside = home.call("b", &other, format!("{ECHO}\n{ECHO}").as_bytes());
    assert!(beside.iter().all(|answer| answer["status"] == "ok"), "{beside:?}");
    run(["state", "propose", &path, "--agent", "b", "--token", &other, "goal.n=1"]).fine();
    assert_eq!(holder.ask(ECHO)["status"], "ok");
    assert_eq!(holder.end(), 0);
    // All of it stands in one run of the home, one after the other.
    let boots = home.log().iter().filter(|record| record["kind"] == "boot").count();
    assert_eq!(boots, 3, "made, the first token, the holder");
    assert_eq!(run(["verify", &path, "--json"]).fine().one()["end"], "clean");
    run(["token", "issue", &path, "--agent", "a", "--tool", "echo"]).fine();
}

/// A token ends while its agent calls, by either name of the command.
#[test]
fn a_token_is_revoked_while_it_is_used() {
    let home = TestHome::new();
    for command in [&["revoke"][..], &["token", "revoke"]] {
        let id = home.worker("a");
        let mut caller = home.hold("a", &id);
        assert_eq!(caller.ask(ECHO)["status"], "ok");
        let path = home.path();
        let args = command.iter().copied().chain([&*path, &id, "--json"]);
        let revoked = run(args).fine().one();
        assert_eq!(revoked["token_id"], id);
        let refused = caller.ask(ECHO);
        assert_eq!(reason(&refused), "revoked");
        assert!(refused["receipt"]["outcome_seq"].as_u64() > revoked["record"].as_u64());
        assert_eq!(caller.end(), 0);
    }
    assert_eq!(home.verify(), 0);
}

#[test]
fn a_policy_is_swapped_while_agents_call() {
    let home = TestHome::new();
    let id = home.worker("a");
    let mut caller = home.hold("a", &id);
    let write = r#"{"tool_id":"fs.write","args":{"path":"x","text":"kept"}}"#;
    assert_eq!(caller.ask(write)["status"], "ok");
    let set = run(["policy", "set", &home.path(), "preset:read-only", "--json"]).fine().one();
    assert_eq!(reason(&caller.ask(write)), "denied");
    assert_eq!(caller.ask(ECHO)["status"], "ok");
    // The one that is not sound is refused on record, and the one in force stays.
    let before = home.log().len();
    let bad = home.file("bad.json", r#"{"constraints":[{"if":1}]}"#);
    let refused = run(["policy", "set", &home.path(), &bad]).failed(3);
    let last = home.log().pop().unwrap();
    assert_eq!((&last["kind"], &last["reason"]), (&json!("refusal"), &json!("bad_policy")));
    assert_eq!(home.log().len(), before + 1);
    // What only the holder can tell: an alias is no tool's own id.
    let text = json!({"v": 1, "constraints": [{
        "id": "a", "effect": "deny", "subject": {"tool_id": "file_write"},
        "when": {"op": "all", "args": []}, "on_fail": "block", "reason": "No.",
    }]});
    let alias = home.file("alias.json", &text.to_string());
    let said = run(["policy", "set", &home.path(), &alias]).failed(3).err;
    assert!(said.contains("file_write"), "{said}");
    // In the same words as where nobody holds the home.
    let shown = run(["policy", "show", &home.path(), "--json"]).fine().one();
    assert_eq!(caller.end(), 0);
    assert_eq!(run(["policy", "set", &home.path(), &bad]).failed(3).err, refused.err);
    let kept = run(["policy", "show", &home.path(), "--json"]).fine().one();
    assert_eq!(kept, shown);
    assert_eq!(run(["policy", "hash", &home.path(), "--json"]).fine().one()["hash"], set["policy"]);
    assert_eq!(home.verify(), 0);
}

/// An operator stops an agent, a tool, or all, and lets them go on.
#[test]
fn calls_are_frozen_and_thawed() {
    let home = TestHome::new();
    let (path, id, other) = (home.path(), home.worker("team/a"), home.worker("b"));
    let (mut a, mut b) = (home.hold("team/a", &id), home.hold("b", &other));
    let write = r#"{"tool_id":"fs.write","args":{"path":"x","text":"kept"}}"#;
    let cases: [(&[&str], [bool; 3]); 3] = [
        (&["--agent", "team"], [true, true, false]),
        (&["--tool", "echo"], [true, false, true]),
        (&["--all"], [true, true, true]),
    ];
    for (what, stopped) in cases {
        run(["freeze", &path].iter().chain(what)).fine();
        let answers = [a.ask(ECHO), a.ask(write), b.ask(ECHO)];
        for (answer, stopped) in answers.iter().zip(stopped) {
            let expected = if stopped { json!("frozen") } else { json!(null) };
            assert_eq!(answer["error"]["reason"], expected, "{what:?} {answer}");
        }
        run(["thaw", &path].iter().chain(what)).fine();
        assert_eq!(a.ask(ECHO)["status"], "ok", "{what:?}");
    }
    // What may have been meant otherwise is done, and said.
    assert_eq!(run(["freeze", &path, "--agent", "team"]).fine().err, "");
    for (command, said) in [("freeze", "teams"), ("thaw", "agent team")] {
        let done = run([command, &path, "--agent", "teams"]);
        assert!(done.code == 0 && done.err.contains(said), "{}", done.err);
    }
    assert_eq!(run(["thaw", &path, "--agent", "team"]).fine().err, "");
    // What would stop nothing is refused.
    run(["freeze", &path, "--tool", "ecko"]).failed(3);
    run(["freeze", &path, "--tool", "file_write"]).failed(3);
    for args in [&["freeze", &path][..], &["thaw", &path, "--all", "--agent", "b"]] {
        assert_eq!(run(args).code, 2);
    }
    assert_eq!((b.end(), a.end()), (0, 0));
    assert_eq!(home.verify(), 0);
}

/// The server is killed: who was connected starts another, which recovers the home, and goes on.
#[test]
fn clients_start_another_server_after_a_kill() {
    let home = TestHome::new();
    let (id, other) = (home.worker("a"), home.worker("b"));
    let (mut a, mut b) = (home.hold("a", &id), home.hold("b", &other));
    assert_eq!((&a.ask(ECHO)["status"], &b.ask(ECHO)["status"]), (&json!("ok"), &json!("ok")));
    home.kill_server();
    std::thread::scope(|scope| {
        for asked in [&mut a, &mut b].map(|caller| scope.spawn(|| caller.ask(ECHO))) {
            assert_eq!(asked.join().unwrap()["status"], "ok");
        }
    });
    let third = home.token("c", &["--tool", "echo"]);
    assert_eq!(home.call("c", &third, ECHO.as_bytes())[0]["status"], "ok");
    let boots = home.log();
    let ended: Vec<_> = boots.iter().filter(|record| record["kind"] == "boot").collect();
    assert_eq!(ended.iter().filter(|boot| boot["before"] == "unclean").count(), 1);
    assert_eq!(ended.len(), 5, "made, two tokens, two servers: the third token was asked of one");
    assert_eq!((a.end(), b.end()), (0, 0));
    assert_eq!(home.verify(), 0);
}

#[test]
fn a_process_that_is_killed_leaves_an_unclean_end() {
    let home = TestHome::new();
    let id = home.worker("a");
    let mut holder = home.hold("a", &id);
    let write = r#"{"tool_id":"fs.write","args":{"path":"x","text":"kept"}}"#;
    assert_eq!(holder.ask(write)["status"], "ok");
    home.kill_server();
    let run_verify = run(["verify", &home.path(), "--json"]);
    assert_eq!(run_verify.code, 11);
    assert_eq!(run_verify.one()["end"], "unclean");
    assert_eq!(run(["doctor", &home.path()]).code, 0);
    assert_eq!(fs::read_to_string(home.workspace("a").join("x")).unwrap(), "kept");
    // The next run closes what was left, and its log is sound.
    assert_eq!(home.call("a", &id, ECHO.as_bytes())[0]["status"], "ok");
    assert_eq!(home.verify(), 0);
    assert_eq!(run(["verify", &home.path(), "--require-anchor"]).code, 12);
}

/// A writer that is killed again and again loses no answer that it gave.
#[test]
fn every_answer_is_in_the_log() {
    let home = TestHome::new();
    let id = home.worker("a");
    let mut leaves = Vec::new();
    for round in 0..5 {
        let mut holder = home.hold("a", &id);
        for _ in 0..=round {
            leaves.push(holder.ask(ECHO)["receipt"]["outcome_leaf"].clone());
        }
        home.kill_server();
        assert_eq!(holder.end(), 0, "it needs none any more");
    }
    let log = home.log();
    for leaf in leaves {
        assert!(log.iter().any(|record| record["leaf"] == leaf));
    }
    assert_eq!(home.verify(), 11);
}
