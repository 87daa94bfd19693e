//! `syscap-conformance`: see the library, and `docs/conformance.md`.

use std::io::{stderr, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words = std::env::args().skip(1);
    ExitCode::from(syscap_conformance::main(&[], words, &mut stdout(), &mut stderr()))
}
