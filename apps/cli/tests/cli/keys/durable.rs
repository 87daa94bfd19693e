//! What is durable before what: as the operating system sees it.

use std::{fs, path::Path, process::Command};

use crate::cli::support::TestHome;

/// The calls that a run makes, one a line; `None` where they can't be watched here.
fn watched(home: &TestHome, args: &[&str]) -> Option<Vec<String>> {
    let trace = home.beside("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-e", "trace=fsync,fdatasync,rename,renameat,renameat2", "-o"]);
    command.arg(&trace).arg(env!("CARGO_BIN_EXE_syscap")).args(args);
    let ran = command.output();
    let watched = ran.is_ok_and(|output| output.status.success());
    let lines = fs::read_to_string(trace).unwrap_or_default();
    if !watched || lines.is_empty() {
        eprintln!("skipped: there is no strace, or it may not watch");
        return None;
    }
    Some(lines.lines().map(str::to_owned).collect())
}

/// The first place at or after `from` where a line has all of it.
fn place(lines: &[String], from: usize, all: &[&str]) -> usize {
    let has = |line: &String| all.iter().all(|part| line.contains(part));
    let found = lines.iter().skip(from).position(has);
    from + found.unwrap_or_else(|| panic!("{all:?} not after {from}: {lines:#?}"))
}

/// Where a file gets its name: it was written whole under another one, and synced, before.
fn written(lines: &[String], file: &str) -> usize {
    let (folder, name) = file.rsplit_once('/').unwrap();
    let part = format!("{folder}/.{name}.");
    let synced = place(lines, 0, &["sync(", &part]);
    place(lines, synced, &["rename", &part, &format!("{file}\"")])
}

/// The new key is durable under its name before the record is asked for, the record is before the
/// old key goes, and the new name is before the command ends.
#[test]
fn a_rotation_is_durable_step_by_step() {
    let home = TestHome::new();
    let args = ["keys", "rotate", &home.path(), "--role", "issuer"];
    let Some(lines) = watched(&home, &args) else { return };
    let keys = home.beside("home/keys");
    let synced = |path: &Path| format!("<{}>", path.display());
    let file = place(&lines, 0, &["sync(", "keys/.issuer.key.part."]);
    let named = place(&lines, file, &["rename", "issuer.key.part", "issuer.key.next"]);
    let folder = place(&lines, named, &["sync(", &synced(&keys)]);
    let record = place(&lines, folder, &["sync(", "home.db"]);
    let gone = place(&lines, record, &["rename", "issuer.key.next", "issuer.key"]);
    place(&lines, gone, &["sync(", &synced(&keys)]);
}

/// Every key is durable, and its name is, before the home's first record is.
#[test]
fn keys_are_durable_before_the_home_is() {
    let home = TestHome { folder: host_support::scratch() };
    let recovery = home.text_beside("recovery.key");
    let args = ["init", &home.path(), "--no-passphrase", "--recovery-out", &recovery];
    let Some(lines) = watched(&home, &args) else { return };
    for name in ["issuer", "policy", "revoker", "approver", "operator"] {
        let named = written(&lines, &format!("keys/{name}.key"));
        let folder = place(&lines, named, &["sync(", &format!("<{}>", home.path() + "/keys")]);
        place(&lines, folder, &["sync(", "home.db-wal"]);
    }
    let named = written(&lines, "/recovery.key");
    let folder = format!("<{}>", home.folder.path().display());
    let first = place(&lines, 0, &["sync(", "keys/.issuer.key."]);
    assert!(place(&lines, named, &["sync(", &folder]) < first);
}
