//! Runs all tests of a program once more, where the system has no `openat2`: what they say of files
//! is so of what opens them there, too.

#[path = "absent.rs"]
mod absent;

use std::{env, process::Command};

use absent::{ABSENT, without_openat2};
use syscap::{format::manifest::Enforcement, syscalls::beneath};

/// Set where they are run again.
const AGAIN: &str = "SYSCAP_TEST_AGAIN";

/// Runs the program's tests again.
pub(crate) fn by_cap_std() {
    let level = || beneath::open(&env::temp_dir()).unwrap().enforcement();
    if env::var_os(AGAIN).is_some() {
        return assert_eq!(level(), Enforcement::CapStd);
    }
    if level() != Enforcement::Openat2 {
        println!("skipped: no openat2 here in the first place");
        return;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    let output = without_openat2(ABSENT[0], || command.env(AGAIN, "1").output().unwrap());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
