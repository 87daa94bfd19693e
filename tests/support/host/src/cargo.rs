//! Cargo, asked by a test.

use std::{env, process::Command};

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
