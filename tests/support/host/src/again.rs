//! Runs the tests of a module once more, where the system has no `openat2`: what they say of files
//! holds for `cap-std`, too.

use std::{env, process::Command};

use kernel_support::absent::{ABSENT, without_openat2};
use syscap::{format::Enforcement, syscalls::beneath};

/// Set in the second run.
const AGAIN: &str = "SYSCAP_TEST_AGAIN";

/// Runs the tests again whose names contain `tests`, as in `"files::"`.
pub fn by_cap_std(tests: &str) {
    let level = || beneath::open(&env::temp_dir()).unwrap().enforcement();
    if env::var_os(AGAIN).is_some() {
        return assert_eq!(level(), Enforcement::CapStd);
    }
    if level() != Enforcement::Openat2 {
        println!("skipped: no openat2 here in the first place");
        return;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.arg(tests).env(AGAIN, "1");
    let output = without_openat2(ABSENT[0], || command.output().unwrap());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("test result: ok. 0 passed"), "no test ran: {text}");
}
