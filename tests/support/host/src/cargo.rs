//! Cargo, asked by a test.

use std::{env, path::Path, process::Command};

/// Cargo, as whoever started the tests has it. What it tells its programs of their package is left
/// out: build scripts look at that (that of `ring` does), and the programs that run at the moment
/// would be built anew.
pub fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    for (name, _) in env::vars_os() {
        let of_a_package = |name: &str| {
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|it| name.starts_with(it))
        };
        if name.to_str().is_some_and(of_a_package) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Has cargo build in the profile that this test was built in: that of the folder below the target
/// folder in which its program lies. So it finds what is there.
///
/// # Panics
/// Where the program lies elsewhere than cargo puts it.
pub fn in_this_profile(cargo: &mut Command) {
    let program = env::current_exe().expect("a program");
    let folder = program.parent().and_then(Path::parent).and_then(Path::file_name);
    match folder.and_then(|folder| folder.to_str()).expect("a folder of a profile") {
        "debug" => cargo,
        profile => cargo.args(["--profile", profile]),
    };
}
