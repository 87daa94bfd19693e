//! Tests that mount: each in a process and a mount namespace of its own.

use std::{path::Path, process::Command};

use tempfile::TempDir;

/// Names the test that runs where it may mount.
pub const MOUNTS: &str = "SYSCAP_TEST_MOUNTS";

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs `body` in a process of its own where it may mount, or says why not. `test` is the name
/// of the calling test, which is started again inside; nothing it mounts is seen out here.
pub fn with_mounts(test: &str, body: impl FnOnce()) {
    if std::env::var_os(MOUNTS).is_some_and(|name| name == *test) {
        return body();
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        if !is_root() {
            command.arg("--map-root-user");
        }
        command.arg("--mount");
        command
    };
    let probe = unshare().args(["mount", "-t", "tmpfs", "none", "/mnt"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("skipped: {test} needs `unshare --mount` and `mount`");
        return;
    }
    let exe = std::env::current_exe().unwrap();
    let mut command = unshare();
    command.arg(exe).args(["--exact", test]).env(MOUNTS, test);
    // Removed from out here, where nothing is mounted in it.
    let scratch = TempDir::new().unwrap();
    let output = command.env("TMPDIR", scratch.path()).output().expect("unshare runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "no such test: {text}");
}

/// Runs `mount` with these arguments.
pub fn mount(arguments: &[&str], at: &Path) {
    let status = Command::new("mount").args(arguments).arg(at).status().unwrap();
    assert!(status.success(), "mount {arguments:?}");
}
