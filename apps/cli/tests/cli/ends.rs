//! `revoke` of more than one token, and `cancel`.

use serde_json::{Value, json};

use crate::cli::support::{ECHO, TestHome, reason, run};

fn standings(home: &TestHome) -> Vec<String> {
    let list = run(["--json", "token", "list", &home.path()]).fine().json();
    list.iter().map(|token| token["standing"].as_str().unwrap().to_owned()).collect()
}

/// The last record that the revoker has signed, as JSON.
fn last(home: &TestHome) -> Value {
    home.log().into_iter().rev().find(|record| record["kind"] == "revoke").unwrap()
}

#[test]
fn revoke_children_ends_derived_tokens_only() {
    let home = TestHome::new();
    let path = home.path();
    let root = home.token("team", &["--tool", "echo", "--delegable", "1"]);
    let part =
        ["token", "attenuate", &path, "--from", &root, "--agent", "team/a", "--tool", "echo"];
    run(part).fine();
    let revoked = run(["revoke", &path, &root, "--children", "--json"]).fine().one();
    assert_eq!(revoked["token_id"], root);
    assert_eq!(standings(&home), ["live", "revoked"]);
    let said = &last(&home)["control"]["says"];
    assert_eq!((&said["target"], &said["cause"]), (&json!("children"), &Value::Null));
    assert_eq!(home.call("team", &root, ECHO.as_bytes())[0]["status"], "ok");
    // Beside the process that holds the home.
    run(part).fine();
    let mut holder = home.hold("team", &root);
    assert_eq!(holder.ask(ECHO)["status"], "ok");
    run(["revoke", &path, &root, "--children", "--because", "once more"]).fine();
    assert_eq!(holder.ask(ECHO)["status"], "ok");
    run(["token", "revoke", &path, &root, "--because", "enough"]).fine();
    assert_eq!(reason(&holder.ask(ECHO)), "revoked");
    assert_eq!(holder.end(), 0);
    assert_eq!(standings(&home), ["revoked"; 3]);
    assert_eq!(home.verify(), 0);
}

#[test]
fn an_epoch_ends_all_so_far() {
    let home = TestHome::new();
    let path = home.path();
    let (one, _) = (home.worker("a"), home.worker("b"));
    let revoked = run(["revoke", &path, "--epoch", "1", "--json"]).fine().one();
    assert_eq!(revoked["epoch"], 1);
    assert_eq!(standings(&home), ["revoked", "revoked"]);
    let refused = home.call("a", &one, ECHO.as_bytes());
    assert_eq!(reason(&refused[0]), "revoked");
    // What is issued now is of that epoch; the same again ends nothing.
    let new = home.worker("a");
    let again = run(["revoke", &path, "--epoch", "1"]).failed(3);
    assert!(again.err.contains("above 1"), "{}", again.err);
    assert_eq!(home.call("a", &new, ECHO.as_bytes())[0]["status"], "ok");
    run(["revoke", &path, "--epoch", "2"]).fine();
    assert_eq!(standings(&home), ["revoked"; 3]);
    assert_eq!(home.verify(), 0);
}

#[test]
fn a_key_ends_what_it_holds_and_says_why() {
    let home = TestHome::new();
    let path = home.path();
    let root = home.token("team", &["--tool", "echo", "--delegable", "1"]);
    let plain = home.worker("a");
    let shown = run(["token", "show", &path, &root, "--json"]).fine().one();
    let holder = shown["holder"].as_str().unwrap().to_owned();
    let nobody = run(["revoke", &path, "--key", &"7".repeat(64)]).failed(3);
    assert!(nobody.err.contains("field: key"), "{}", nobody.err);
    let because = "it was on the lost laptop";
    let revoked = run(["revoke", &path, "--key", &holder, "--because", because, "--json"]);
    assert_eq!(revoked.fine().one()["key"], holder);
    assert_eq!(standings(&home), ["revoked", "live"]);
    assert_eq!(home.call("a", &plain, ECHO.as_bytes())[0]["status"], "ok");
    // The log has the commitment, the vault the words.
    let record = last(&home);
    assert!(record["control"]["says"]["cause"].is_string());
    assert!(!record.to_string().contains("laptop"));
    let vault = rusqlite::Connection::open(std::path::Path::new(&path).join("home.db")).unwrap();
    let seq = record["seq"].as_i64().unwrap();
    let row: Vec<u8> =
        vault.query_row("SELECT row FROM vault WHERE seq = ?1", [seq], |row| row.get(0)).unwrap();
    assert!(row.windows(because.len()).any(|part| part == because.as_bytes()));
    drop(vault);
    // Nothing more can be handed on by that key.
    let flags = ["--agent", "b", "--tool", "echo", "--delegable", "1"];
    let issued = run(["token", "issue", &path].iter().chain(&flags));
    assert!(issued.failed(3).err.contains("holder"));
    assert_eq!(home.verify(), 0);
}

/// How many tokens a revocation hit: those below what it names too, and nothing else.
#[test]
fn a_revocation_says_how_many_tokens_it_hit() {
    let home = TestHome::new();
    let path = home.path();
    let root = home.token("team", &["--tool", "echo", "--delegable", "2"]);
    let derived = |from: &str, agent: &str| {
        let args = ["token", "attenuate", &path, "--from", from, "--agent", agent, "--tool"];
        run(args.iter().chain(&["echo", "--delegable", "1"])).fine().out.trim_end().to_owned()
    };
    let part = derived(&root, "team/a");
    let leaf = ["token", "attenuate", &path, "--from", &part, "--agent", "team/a/b"];
    run(leaf.iter().chain(&["--tool", "echo"])).fine();
    let other = home.worker("a");
    home.token("c", &["--tool", "echo", "--expires", "1s"]);
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let hit = |args: &[&str]| {
        let said = run([&["revoke", &path, "--json"], args].concat()).fine().one();
        (said["tokens"].as_u64().unwrap(), said["unexpired"].as_u64().unwrap())
    };
    assert_eq!(hit(&[&part, "--children"]), (1, 1));
    assert_eq!(hit(&[&root]), (3, 3));
    let list = home.file("list", &format!("{other}\n{}\n", "7".repeat(64)));
    assert_eq!(hit(&["--list", &list]), (1, 1));
    // The one that had expired is hit, too.
    assert_eq!(hit(&["--epoch", "1"]), (5, 4));
    let text = run(["revoke", &path, "--epoch", "2"]).fine().out;
    assert!(text.ends_with(": 5 tokens, 4 not expired\n"), "{text}");
}

#[test]
fn one_thing_is_ended_at_a_time() {
    let home = TestHome::new();
    let (path, id) = (home.path(), home.worker("a"));
    let before = home.log().len();
    let long = "x".repeat(4_097);
    let wrong: [&[&str]; 7] = [
        &["revoke", &path],
        &["revoke", &path, &id, "--epoch", "1"],
        &["revoke", &path, "--epoch", "1", "--children"],
        &["revoke", &path, &id, "--because", ""],
        &["revoke", &path, &id, "--because", &long],
        &["cancel", &path],
        &["cancel", &path, "x"],
    ];
    for words in wrong {
        assert_eq!(run(words).code, 2, "{words:?}");
    }
    assert_eq!(home.log().len(), before);
    run(["revoke", &path, &"1".repeat(64), "--children"]).failed(3);
}

/// A call that has ended is not cancelled any more.
#[test]
fn ended_call_is_not_cancelled() {
    let home = TestHome::new();
    let (path, id) = (home.path(), home.worker("a"));
    let answer = &home.call("a", &id, ECHO.as_bytes())[0];
    let intent = answer["receipt"]["intent_seq"].to_string();
    for number in [&*intent, "0", "999999"] {
        let refused = run(["cancel", &path, number, "--because", "too slow"]).failed(3);
        assert!(refused.err.contains("not_open"), "{}", refused.err);
    }
    let records = home.log();
    assert!(records.iter().all(|record| record["kind"] != "cancel"));
    assert_eq!(home.verify(), 0);
}
