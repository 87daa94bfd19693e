//! `syscap conformance`: the suite of the crate `syscap-conformance`, with the same words.

use std::ffi::OsString;
use std::io::{stderr, stdout};

use clap::Args;

use crate::exit::{Ended, Exit};

/// Hold a governor of tools against the conformance suite: a command that speaks line JSON.
#[derive(Args, Debug)]
#[command(after_long_help = syscap_conformance::USAGE)]
pub(crate) struct Conformance {
    /// The suite's own options, and the command behind --.
    #[arg(value_name = "WORDS", trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<OsString>,
}

impl Conformance {
    pub(crate) fn run(&self) -> Ended {
        // As they were typed: of those above the parser has taken the first `--` away.
        let words = std::env::args_os().skip_while(|word| word != "conformance").skip(1);
        let words = words.map(|word| word.to_string_lossy().into_owned());
        let code = syscap_conformance::main(&["conformance"], words, &mut stdout(), &mut stderr());

        Ok(Exit::Program(code))
    }
}
