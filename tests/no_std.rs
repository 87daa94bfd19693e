//! Kernel, policy and analysis have no I/O: they link into a static library without the standard
//! library, and that library calls nothing of the operating system.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    let built = Workshop::enter().build(&[]);
    assert!(built.status.success(), "the probe does not build:\n{}", errors(&built));
}

#[test]
fn the_probe_finds_std() {
    let built = Workshop::enter().build(&["--features", "with_std"]);
    assert!(!built.status.success(), "a probe that links std builds: it proves nothing");
    assert!(errors(&built).contains("error[E0152]"), "another error:\n{}", errors(&built));
}

#[test]
fn no_std_build_calls_no_system_function() {
    let workshop = Workshop::enter();
    let system = |args: &[&str]| {
        let built = workshop.build(args);
        assert!(built.status.success(), "the probe does not build:\n{}", errors(&built));
        system_symbols(&workshop.folder.join("target/debug/libno_std_probe.a"))
    };
    let (Some(without), Some(with)) = (system(&[]), system(&["--features", "with_system"])) else {
        println!("skipped: no_std_build_calls_no_system_function needs nm");
        return;
    };
    assert_eq!(without, BTreeSet::new(), "kernel, policy or analysis calls the system");
    assert_eq!(with, BTreeSet::from(["getpid".to_owned()]), "the list misses a call");
}

/// What the library uses that lies neither in itself nor in Rust's `core` and `alloc`; `None`
/// without `nm`. Calls by inline assembly would not show: `forbid(unsafe_code)` rules them out.
fn system_symbols(archive: &Path) -> Option<BTreeSet<String>> {
    let listed = Command::new("nm").arg("--format=posix").arg(archive).output().ok()?;
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
    let of_kernel = defined.iter().filter(|name| name.contains("syscap_kernel")).count();
    assert!(of_kernel > 100, "only {of_kernel} symbols of the kernel were found");
    // Rust's own objects, among them arithmetic on wide integers, hide from older `nm`s.
    let rust = |name: &str| name.starts_with("_R") || name.starts_with("_ZN");
    let wide = |name: &str| name.starts_with("__") && name.ends_with("ti3");
    let known = |name: &str| HARMLESS.contains(&name) || rust(name) || wide(name);
    let outside = used.difference(&defined).filter(|name| !known(name));
    Some(outside.map(|name| (*name).to_owned()).collect())
}

/// Where the probe is built: below the target folder, one build at a time.
struct Workshop {
    folder: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Workshop {
    /// Puts the probe's manifest there, with the workspace's own locked versions: nothing is
    /// resolved anew, and nothing is written into the tree.
    fn enter() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let probe = root.join("tests/no_std_probe");
        let manifest = fs::read_to_string(probe.join("Cargo.toml")).expect("the manifest");
        let manifest = manifest
            .replace("\"../../", &format!("\"{}/", root.display()))
            .replace("\"src/lib.rs\"", &format!("\"{}\"", probe.join("src/lib.rs").display()));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_std_probe");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("Cargo.toml"), manifest).expect("written");
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).expect("the lock");
        Self { folder, _alone: alone }
    }

    fn build(&self, args: &[&str]) -> Output {
        host_support::cargo()
            .current_dir(&self.folder)
            .args(["build", "--quiet", "--offline", "--target-dir", "target"])
            // Lints of the workspace are not the probe's.
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .args(args)
            .output()
            .expect("cargo runs")
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
