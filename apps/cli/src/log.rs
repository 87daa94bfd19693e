//! `syscap log`: what is on record.

mod answers;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::{exit::Ended, output::Out, verify};

/// What to do with the log.
#[derive(Debug, Subcommand)]
pub(crate) enum Log {
    /// Show the records, one row each. Works beside the process that holds the home.
    Show(show::Show),
    /// Write the log to a folder that can be verified without the home.
    Export(Export),
}

impl Log {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        match self {
            Self::Show(show) => show.run(out),
            Self::Export(export) => verify::export(&export.home, &export.out, out),
        }
    }
}

/// From where to where.
#[derive(Args, Debug)]
pub(crate) struct Export {
    /// The home.
    home: PathBuf,
    /// The folder to make.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}
