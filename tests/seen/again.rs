//! Runs all tests of a program once more, where the system has no `openat2`: what they say of files
//! is so of what opens them there, too.

use std::{collections::BTreeMap, env, panic::resume_unwind, process::Command, thread};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use syscap::{format::manifest::Enforcement, syscalls::beneath};

/// Set where they are run again.
const AGAIN: &str = "SYSCAP_TEST_AGAIN";
/// `openat2`, everywhere.
const CALL: i64 = 437;
/// What an old system answers to it.
const ENOSYS: u32 = 38;

/// Runs the program's tests again, all but those whose names begin so.
pub(crate) fn without_openat2(but: &[&str]) {
    let level = || beneath::open(&env::temp_dir()).unwrap().enforcement();
    if env::var_os(AGAIN).is_some() {
        return assert_eq!(level(), Enforcement::CapStd);
    }
    if level() != Enforcement::Openat2 {
        println!("skipped: no openat2 here in the first place");
        return;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.env(AGAIN, "1").args(but.iter().flat_map(|name| ["--skip", name]));
    let rules = BTreeMap::from([(CALL, Vec::new())]);
    let (allow, absent) = (SeccompAction::Allow, SeccompAction::Errno(ENOSYS));
    let filter = SeccompFilter::new(rules, allow, absent, env::consts::ARCH.try_into().unwrap());
    let filter = BpfProgram::try_from(filter.unwrap()).unwrap();
    // A filter is the thread's, and of all that the thread starts.
    let run = || {
        apply_filter(&filter).unwrap();
        command.output().unwrap()
    };
    let output = thread::scope(|scope| scope.spawn(run).join());
    let output = output.unwrap_or_else(|panic| resume_unwind(panic));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
