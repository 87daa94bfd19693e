//! `doctor`.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use serde_json::Value;

use crate::absent::{ABSENT, without_openat2};
use crate::support::{ECHO, Serving, TestHome, run};

fn levels(findings: &[Value], what: &str) -> Vec<String> {
    let of = findings.iter().filter(|finding| finding["what"] == what);
    of.map(|finding| finding["level"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_machine_that_runs_this_is_fit() {
    let findings = run(["doctor", "--json"]).fine().json();
    for what in ["openat2", "sqlite", "clocks", "entropy", "descriptors"] {
        assert_eq!(levels(&findings, what), ["ok"], "{what}");
    }
}

/// Without `openat2` files are opened otherwise, which is said; a home that asks for it is not fit.
#[test]
fn what_opens_files_is_said() {
    let (home, strict) = (TestHome::new(), TestHome::new());
    fs::write(strict.beside("home/opener"), "openat2").unwrap();
    let fine = run(["doctor", &strict.path(), "--json"]).fine().json();
    assert_eq!(levels(&fine, "opener"), ["ok"]);
    without_openat2(ABSENT[0], || {
        let findings = run(["doctor", &home.path(), "--json"]).fine().json();
        assert_eq!(levels(&findings, "openat2"), ["note"]);
        assert_eq!(levels(&findings, "opener"), ["ok"]);
        let run = run(["doctor", &strict.path(), "--json"]);
        assert_eq!(run.code, 1);
        assert_eq!(levels(&run.json(), "opener"), ["bad"]);
    });
}

#[test]
fn a_new_home_is_fit_and_its_keys_are_spoken_of() {
    let home = TestHome::new();
    let findings = run(["doctor", &home.path(), "--json"]).fine().json();
    for what in ["disk", "holder", "socket", "permissions", "durability", "policy", "tools", "time"]
    {
        assert_eq!(levels(&findings, what), ["ok"], "{what}");
    }
    for what in ["log", "end", "intents"] {
        assert_eq!(levels(&findings, what), ["ok"], "{what}");
    }
    assert_eq!(levels(&findings, "keys"), ["note"]);
    assert_eq!(run(["doctor", &home.path()]).fine().out.lines().count(), findings.len());
}

#[test]
fn what_others_can_reach_is_bad() {
    for (name, mode) in [("home", 0o770), ("home/keys", 0o755), ("home/keys/issuer.key", 0o604)] {
        let home = TestHome::new();
        fs::set_permissions(home.beside(name), Permissions::from_mode(mode)).unwrap();
        let run = run(["doctor", &home.path(), "--json"]);
        assert_eq!(run.code, 1, "{name}");
        assert_eq!(levels(&run.json(), "permissions"), ["bad"], "{name}");
    }
}

#[test]
fn keys_of_another_home_are_bad() {
    let (home, other) = (TestHome::new(), TestHome::new());
    let key = "home/keys/issuer.key";
    fs::copy(other.beside(key), home.beside(key)).unwrap();
    let run = run(["doctor", &home.path(), "--json"]);
    assert_eq!(run.code, 1);
    assert!(levels(&run.json(), "keys").contains(&"bad".to_owned()));
}

/// Whether the home is held, and whether its holder can be reached.
#[test]
fn the_holder_and_its_socket_are_looked_at() {
    let home = TestHome::new();
    let found = |what: &str| {
        let run = run(["doctor", &home.path(), "--json"]);
        let says = run.json().into_iter().find(|finding| finding["what"] == what).unwrap();
        (run.code, says["level"].as_str().unwrap().to_owned())
    };
    let mut serving = Serving::of(&home.path(), &[]);
    assert_eq!(found("holder"), (0, "note".to_owned()));
    assert_eq!(found("socket"), (0, "ok".to_owned()));
    let socket = home.beside("home/socket");
    fs::set_permissions(&socket, Permissions::from_mode(0o666)).unwrap();
    assert_eq!(found("socket"), (1, "bad".to_owned()));
    fs::set_permissions(&socket, Permissions::from_mode(0o600)).unwrap();
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
    // Nobody listens there any more.
    assert_eq!(found("holder"), (0, "ok".to_owned()));
    assert_eq!(found("socket"), (0, "note".to_owned()));
    assert!(run(["doctor", &home.path()]).out.contains("stale"));
    // The next one replaces it, and takes it away.
    let id = home.worker("a");
    home.call("a", &id, ECHO.as_bytes());
    assert!(!socket.exists());
    assert_eq!(found("socket"), (0, "ok".to_owned()));
    fs::write(&socket, "mine").unwrap();
    assert_eq!(found("socket"), (1, "bad".to_owned()));
    // Nothing but a socket is removed; and what could not be served ends properly.
    home.call_run("a", &id, ECHO.as_bytes()).failed(4);
    assert_eq!(fs::read(&socket).unwrap(), b"mine");
    assert_eq!(run(["verify", &home.path(), "--json"]).fine().one()["end"], "clean");
}
