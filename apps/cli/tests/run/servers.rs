//! What a run starts outside: servers of the gateway, which the agent's code must not become.

use std::path::Path;
use std::process::Command;

use crate::run::world::{PYTHON, SYSCAP, World};

const NOBODY: u32 = 65_534;

/// Each case of `canaries.py`: the tool answers, and nothing that was planted reaches the world
/// outside.
fn each_canary_is_held(mut command: Command, program: &Path, folder: &Path) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run/canaries.py");
    // By its text: somebody else may not read this folder.
    let text = std::fs::read_to_string(script).unwrap();
    let ran = command.args([PYTHON, "-c", &text]).arg(program).arg(folder);
    let ran = ran.current_dir(folder).output().unwrap();
    let (said, told) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}{told}");
    let mut held = 0;
    for line in said.lines() {
        match line.split_once(": skipped: ") {
            Some((case, why)) => println!("skipped: canary {case}: {why}"),
            None => {
                assert!(line.ends_with(": answered held"), "{line}: {told}");
                held += 1;
            }
        }
    }
    assert!(held >= 7, "{said}");
}

#[test]
fn planted_code_runs_nowhere_outside() {
    if World::new().is_none() {
        return;
    }
    let folder = host_support::scratch();
    each_canary_is_held(Command::new("env"), Path::new(SYSCAP), folder.path());
}

#[test]
fn planted_code_runs_nowhere_outside_for_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: the canaries ran as an ordinary user already");
    }
    if World::new().is_none() {
        return;
    }
    let folder = host_support::scratch();
    let (own, program) = (folder.path().join("own"), folder.path().join("syscap"));
    std::fs::create_dir(&own).unwrap();
    assert!(Command::new("cp").args([Path::new(SYSCAP), &program]).status().unwrap().success());
    let mode = ["755".as_ref(), folder.path().as_os_str(), program.as_os_str()];
    assert!(Command::new("chmod").args(mode).status().unwrap().success());
    std::os::unix::fs::chown(&own, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"]);
    command.env("TMPDIR", &own);
    each_canary_is_held(command, &program, &own);
}
