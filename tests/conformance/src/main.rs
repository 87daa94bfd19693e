//! `syscap-conformance`: see the library, and `docs/conformance.md`.

use std::io::{stderr, stdout};
use std::process::ExitCode;

use clap::Parser as _;

/// Run the conformance suite on an implementation.
#[derive(clap::Parser)]
#[command(version)]
struct Program {
    #[command(flatten)]
    suite: syscap_conformance::Suite,
}

fn main() -> ExitCode {
    ExitCode::from(Program::parse().suite.run(&[], &mut stdout(), &mut stderr()))
}
