//! Tests that look at their whole process.

use std::{env, process::Command};

/// Names the test that runs alone.
const ALONE: &str = "SYSCAP_TEST_ALONE";

/// Runs `body` in a process of its own: one that counts the process's threads, say. `test` is the
/// calling test's name, which is started again there.
pub fn alone(test: &str, body: impl FnOnce()) {
    if env::var_os(ALONE).is_some_and(|name| name == *test) {
        return body();
    }
    let mut command = Command::new(env::current_exe().unwrap());
    let output = command.args(["--exact", test]).env(ALONE, test).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{test}: {text}");
}
