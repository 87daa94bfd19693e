//! The vectors and `requirements.json` are what the program makes, and each requirement has its own.

use std::path::Path;
use std::process::Command;

#[test]
fn vectors_are_what_the_program_makes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut program = Command::new(env!("CARGO_BIN_EXE_syscap-vectors"));
    let done = program.arg("--check").current_dir(root).output().expect("runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
