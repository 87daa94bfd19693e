//! Kernel and policy have no I/O: they link into a static library without the standard library,
//! and that library calls nothing of the operating system.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Mutex, PoisonError},
};

/// What the compiler itself may leave to be linked: moving memory, and the unwinding that a
/// library with `panic = "abort"` never does. Everything else would be a way out.
const HARMLESS: [&str; 8] = [
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "bcmp",
    "_GLOBAL_OFFSET_TABLE_",
    "_Unwind_Resume",
    "rust_eh_personality",
];

#[test]
fn kernel_and_policy_link_without_std() {
    let built = build(&[]);
    assert!(built.status.success(), "the probe does not build:\n{}", errors(&built));
}

#[test]
fn the_probe_finds_std() {
    let built = build(&["--features", "with_std"]);
    assert!(!built.status.success(), "a probe that links std builds: it proves nothing");
    assert!(errors(&built).contains("error[E0152]"), "another error:\n{}", errors(&built));
}

#[test]
fn nothing_of_the_system_is_called() {
    let built = build(&[]);
    assert!(built.status.success(), "the probe does not build:\n{}", errors(&built));
    let archive = workshop().join("target/debug/libno_std_probe.a");
    let Ok(listed) = Command::new("nm").arg("--format=posix").arg(&archive).output() else {
        println!("skipped: nothing_of_the_system_is_called needs nm");
        return;
    };
    let listed = String::from_utf8_lossy(&listed.stdout);
    let (mut used, mut defined) = (BTreeSet::new(), BTreeSet::new());
    for line in listed.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some(name), Some("U" | "w")) => used.insert(name),
            (Some(name), Some(_)) => defined.insert(name),
            _ => false,
        };
    }
    let of_kernel = |name: &&&str| name.contains("syscap_kernel");
    let found = defined.iter().filter(of_kernel).count();
    assert!(found > 100, "only {found} symbols of the kernel were found");
    let outside: Vec<_> = used.difference(&defined).collect();
    let system: Vec<_> = outside.iter().filter(|name| !HARMLESS.contains(**name)).collect();
    assert!(system.is_empty(), "the system is called by way of {system:?}");
}

/// Builds the probe with the workspace's own locked versions, and writes nothing into the tree.
fn build(args: &[&str]) -> Output {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workshop = workshop();
    fs::create_dir_all(&workshop).expect("a folder");
    let probe = root.join("tests/no_std_probe");
    let manifest = fs::read_to_string(probe.join("Cargo.toml")).expect("the manifest");
    let manifest = manifest
        .replace("\"../../", &format!("\"{}/", root.display()))
        .replace("\"src/lib.rs\"", &format!("\"{}\"", probe.join("src/lib.rs").display()));
    fs::write(workshop.join("Cargo.toml"), manifest).expect("written");
    fs::copy(root.join("Cargo.lock"), workshop.join("Cargo.lock")).expect("the lock");
    Command::new(env!("CARGO"))
        .current_dir(&workshop)
        .args(["build", "--quiet", "--offline", "--target-dir", "target"])
        .args(args)
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .expect("cargo runs")
}

fn workshop() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_std_probe")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
