//! `doctor`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::cli::support::{ECHO, Serving, TestHome, run, syscap};
use kernel_support::absent::{ABSENT, without, without_openat2};

fn levels(findings: &[Value], what: &str) -> Vec<String> {
    let of = findings.iter().filter(|finding| finding["what"] == what);
    of.map(|finding| finding["level"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_machine_that_runs_this_is_fit() {
    let findings = run(["doctor", "--json"]).fine().json();
    for what in ["container", "confinement"] {
        assert_eq!(levels(&findings, what).len(), 1, "{what}");
    }
    for what in ["openat2", "sqlite", "clocks", "entropy", "descriptors"] {
        assert_eq!(levels(&findings, what), ["ok"], "{what}");
    }
}

/// Without `openat2` files are opened otherwise, which is said; a home that asks for it is not fit.
#[test]
fn doctor_reports_how_files_are_opened() {
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
    // People read the verdict first. Of a home that is well that is all, but for --all.
    let lines = |flags: &[&str]| {
        let out = run([&["doctor", &home.path()][..], flags].concat()).fine().out;
        out.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&[]).len(), 1);
    let all = lines(&["--all"]);
    assert_eq!(all.len(), findings.len() + 1);
    assert!(all[0].starts_with("all is well ("), "{}", all[0]);
}

/// Mounts in a mount namespace of its own, makes a home there, and has it looked at; `None` where
/// this system lets nobody do that.
fn mounted(how: &str) -> Option<Vec<Value>> {
    looked_at(how, "true", 0)
}

/// The same, with something done once the home is made; `doctor` ends with that code.
fn looked_at(how: &str, then: &str, code: i32) -> Option<Vec<Value>> {
    let folder = tempfile::tempdir().unwrap();
    let is_root = rustix::process::geteuid().is_root();
    let flags = if is_root { "-m" } else { "-rm" };
    let mut shell = Command::new("unshare");
    let script = format!(
        "mkdir at lower upper work && {how} && echo mounted >&2 && \
         \"$SYSCAP\" init at/home --no-passphrase >&2 && {then} && \
         exec \"$SYSCAP\" doctor at/home --json"
    );
    shell.args([flags, "sh", "-ec", &script]).current_dir(&folder);
    let ran = shell.env("SYSCAP", syscap().get_program()).output().ok()?;
    let (out, err) =
        (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
    if !err.contains("mounted") {
        println!("skipped: `{how}` is not to be had here: {err}");
        return None;
    }
    assert_eq!(ran.status.code(), Some(code), "{err}");
    Some(out.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn finding<'f>(findings: &'f [Value], what: &str) -> &'f Value {
    findings.iter().find(|finding| finding["what"] == what).unwrap()
}

/// What a home lies on is told by the real thing: memory, and a layer over other folders. What
/// can't be had here is told by the text of other systems' mountinfo, in the unit tests.
#[test]
fn doctor_reports_the_storage_of_a_home() {
    let home = TestHome::new();
    let findings = run(["doctor", &home.path(), "--json"]).fine().json();
    let here = finding(&findings, "storage");
    assert!(here["kind"].is_string() && here["mounted_at"].is_string(), "{here}");
    if let Some(findings) = mounted("mount -t tmpfs tmpfs at") {
        let memory = finding(&findings, "storage");
        assert_eq!((&memory["level"], &memory["storage"]), (&"note".into(), &"memory".into()));
        assert_eq!(memory["kind"], "tmpfs");
    }
    let overlay = "mount -t tmpfs tmpfs upper && mkdir upper/u upper/w && \
                   mount -t overlay overlay -o lowerdir=lower,upperdir=upper/u,workdir=upper/w at";
    if let Some(findings) = mounted(overlay) {
        let layer = finding(&findings, "storage");
        assert_eq!((&layer["level"], &layer["storage"]), (&"note".into(), &"layer".into()));
        assert!(layer["mounted_at"].as_str().unwrap().ends_with("/at"), "{layer}");
    }
}

/// What calls need is tried, and what is wrong is named: a disk that can't be written, a system
/// without `/proc`. A folder for temporary files is none of it.
#[test]
fn doctor_tries_the_work_of_calls() {
    let home = TestHome::new();
    let mut here = syscap();
    here.args(["doctor", &home.path(), "--json"]).env("TMPDIR", "/nowhere");
    let out = String::from_utf8(here.output().unwrap().stdout).unwrap();
    let findings: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for what in ["openat2", "work"] {
        assert_eq!(levels(&findings, what), ["ok"], "{what}");
    }
    assert!(
        !fs::read_dir(home.path())
            .unwrap()
            .any(|entry| { entry.unwrap().file_name().to_string_lossy().contains("doctor") })
    );
    let tmpfs = "mount -t tmpfs tmpfs at";
    for then in ["mount -o remount,ro at", "umount -l /proc"] {
        if let Some(findings) = looked_at(tmpfs, then, 1) {
            let work = finding(&findings, "work");
            assert_eq!(work["level"], "bad", "{then}: {work}");
        }
    }
}

/// How well programs are confined here is found by starting one: without Landlock no more than to
/// bounds.
#[test]
fn confinement_is_tried_and_not_assumed() {
    const LANDLOCK_CREATE_RULESET: i64 = 444;
    let found = || finding(&run(["doctor", "--json"]).fine().json(), "confinement").clone();
    let here = found();
    let levels = ["contained", "confined", "bounded"];
    assert!(levels.iter().any(|level| here["level_of_confinement"] == *level), "{here}");
    let without = without(LANDLOCK_CREATE_RULESET, ABSENT[0], found);
    assert_eq!(without["level_of_confinement"], "bounded", "{without}");
    assert_eq!((&without["level"], &without["landlock"]), (&"note".into(), &0.into()));
}

#[test]
fn hidden_view_is_tried_and_not_assumed() {
    const FSOPEN: i64 = 430;
    let found = || finding(&run(["doctor", "--json"]).fine().json(), "servers").clone();
    let without = without(FSOPEN, ABSENT[0], found);
    assert_eq!((&without["level"], &without["view_hidden"]), (&"note".into(), &false.into()));
    assert!(found()["view_hidden"].is_boolean());
}

/// A tool that may take as long as a client waits by itself is named, with the clients.
#[test]
fn clients_that_give_up_before_a_call_are_named() {
    let home = TestHome::new();
    let clients = || {
        let findings = run(["doctor", &home.path(), "--json"]).fine().json();
        finding(&findings, "clients").clone()
    };
    // Requests end after 10 seconds where nothing else is set.
    let own = clients();
    assert_eq!((&own["level"], &own["limit_ms"]), (&"ok".into(), &10_000.into()));
    let set = |ms: u64| {
        let settings = format!(r#"{{"base_url": "https://a.test/", "timeout_ms": {ms}}}"#);
        let args = ["http", "set", &home.path(), "slow", "-"];
        assert_eq!(crate::cli::support::run_with(args, settings.as_bytes()).code, 0);
    };
    set(90_000);
    let slow = clients();
    assert_eq!((&slow["level"], &slow["limit_ms"]), (&"note".into(), &90_000.into()));
    assert_eq!(slow["tool"], "slow");
    let named = |found: &Value| -> Vec<String> {
        let list = found["give_up_before"].as_array().unwrap().iter();
        list.map(|one| one["client"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(named(&own), [""; 0]);
    let slow = named(&slow);
    assert_eq!(slow[..2], ["codex", "cline"]);
    assert!(!slow.contains(&"gemini".to_owned()), "{slow:?}");
}

#[test]
fn doctor_calls_wide_permissions_bad() {
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
    let all = run(["doctor", &home.path(), "--json"]).json();
    let server = all.into_iter().find(|finding| finding["what"] == "server").unwrap();
    let (own, by) = (serving.child.id(), std::process::id());
    for known in
        [format!("process {own} ("), format!("started by process {by} ("), "niceness".into()]
    {
        assert!(server["says"].as_str().unwrap().contains(&known), "{server}");
    }
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
    assert!(run(["doctor", &home.path(), "--all"]).out.contains("stale"));
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
