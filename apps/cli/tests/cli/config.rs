//! `config`, and `revoke --list`.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::json;

use crate::cli::approvals::{asking, write};
use crate::cli::support::{ECHO, Serving, TestHome, reason, run};

fn shown(home: &TestHome) -> serde_json::Value {
    run(["config", &home.path(), "--json"]).fine().one()
}

#[test]
fn a_program_is_named_by_the_operator_and_told() {
    let (home, token) = asking();
    let server = json!({"idle_s": null, "headless": false, "program": null});
    assert_eq!(shown(&home), json!({"notify": null, "list": null, "server": server}));
    let folder = tempfile::tempdir().unwrap();
    let (program, told) = (folder.path().join("told"), folder.path().join("asks"));
    let path = program.to_str().unwrap();
    // Not a program yet.
    assert_eq!(run(["config", &home.path(), "--notify", path]).code, 2);
    fs::write(&program, format!("#!/bin/sh\ncat >> {}\n", told.display())).unwrap();
    assert_eq!(run(["config", &home.path(), "--notify", path]).code, 2);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    for bad in [&["--notify", "told"][..], &["--notify", path, "--limit", "2m"], &["--limit", "5s"]]
    {
        assert_eq!(run([&["config", &home.path()], bad].concat()).code, 2, "{bad:?}");
    }
    let serving = Serving::of(&home.path(), &[]);
    run(["config", &home.path(), "--notify", path, "--limit", "5s"]).fine();
    let set = json!({"notify": path, "ceiling": "internal", "limit_ms": 5_000, "list": null, "server": server});
    assert_eq!(shown(&home), set);
    let asked = home.call("a", &token, write("a.txt", "hello").as_bytes()).remove(0);
    assert_eq!(reason(&asked), "asked");
    let begun = std::time::Instant::now();
    while !fs::read_to_string(&told).is_ok_and(|text| text.ends_with('\n')) {
        assert!(begun.elapsed().as_secs() < 60, "nobody was told");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let said: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&told).unwrap()).unwrap();
    let seen = || run(["top", &home.path(), "--once", "--json"]).fine().one()["counts"].clone();
    let until = |what: &str| {
        let begun = std::time::Instant::now();
        while seen()[what] != 1 {
            assert!(begun.elapsed().as_secs() < 60, "{}", seen());
        }
    };
    until("notified");
    // One that fails is seen where somebody looks.
    fs::remove_file(&program).unwrap();
    home.call("a", &token, write("b.txt", "hello").as_bytes());
    until("unnotified");
    let text = run(["top", &home.path(), "--once"]).fine().out;
    assert!(text.contains("nobody was told of asks 1 times"), "{text}");
    assert_eq!(said["asks"][0]["args"], json!({"path": "a.txt", "text": "hello"}));
    run(["config", &home.path(), "--no-notify"]).fine();
    assert_eq!(shown(&home)["notify"], json!(null));
    serving.stop();
    assert_eq!(home.verify(), 0);
}

#[test]
fn the_time_is_confirmed() {
    let home = TestHome::new();
    let record = run(["config", &home.path(), "--confirm-time", "--json"]).fine().one();
    let record = usize::try_from(record["record"].as_u64().unwrap()).unwrap();
    assert_eq!(home.log()[record]["kind"], "config");
}

#[test]
fn a_list_ends_tokens_and_says_how_new_it_is() {
    let home = TestHome::new();
    let old = home.token("a", &["--tool", "echo"]);
    let token = home.token("a", &["--tool", "echo", "--fresh-within", "1h"]);
    let call = |token: &str| home.call("a", token, ECHO.as_bytes()).remove(0);
    assert_eq!(reason(&call(&token)), "stale_revocations");
    let standing = || {
        let shown = run(["token", "show", &home.path(), &token, "--json"]).fine().one();
        shown["standing"].as_str().unwrap().to_owned()
    };
    assert_eq!(standing(), "stale");
    let text = run(["token", "show", &home.path(), &token]).fine().out;
    assert!(text.contains("needs one"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list");
    let path = file.to_str().unwrap();
    let missing = "0".repeat(64);
    fs::write(&file, format!("# of today\n{old} # left\n\n{missing}\n")).unwrap();
    let said = run(["revoke", &home.path(), "--list", path, "--because", "left", "--json"]);
    assert_eq!(said.fine().one()["version"], 1);
    assert_eq!(call(&token)["status"], "ok");
    assert_eq!(standing(), "live");
    assert_eq!(reason(&call(&old)), "revoked");
    // An empty one says that nothing else has ended.
    run(["revoke", &home.path(), "--list", "/dev/null"]).fine();
    let shown = shown(&home);
    assert_eq!(shown["list"], 2);
    fs::write(&file, "no token\n").unwrap();
    for bad in [&["--list", path][..], &["--list", path, "--epoch", "3"], &[&old, "--list", path]] {
        assert_eq!(run([&["revoke", &home.path()], bad].concat()).code, 2, "{bad:?}");
    }
    assert_ne!(run(["revoke", &home.path(), "--list", "/nowhere"]).code, 0);
    let log = run(["log", "show", &home.path()]).fine().out;
    assert!(log.contains("list 1 of 2 tokens"), "{log}");
    assert_eq!(home.verify(), 0);
}
