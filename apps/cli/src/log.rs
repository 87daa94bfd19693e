//! `syscap log`: what is on record.

mod acts;
mod answers;
pub(crate) mod head;
mod kept;
mod line;
mod row;
mod select;
mod settled;
mod show;
pub(crate) mod timeline;
mod tools;
mod whole;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use syscap::format::Seq;

use crate::exit::{Ended, Failure};
use crate::output::Out;
use crate::verify;

/// The log: what was called, decided and done.
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Examples:
  syscap log show home --last 20
  syscap log show home 17
  syscap log head home
  syscap log export home --out copy")]
pub(crate) enum Log {
    /// Show a line for each call, or one record whole.
    Show(show::Show),
    /// Print the end of the log, SEQ:HASH, to be noted elsewhere: `verify --head` finds a cut before it.
    Head(head::LogHead),
    /// Write the log to a folder that can be verified without the home.
    Export(Export),
}

impl Log {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        match self {
            Self::Show(show) => show.run(out),
            Self::Head(head) => head.run(out),
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

/// That the vault has something else than a record commits to.
fn altered(home: &Path, record: Seq) -> Failure {
    let problem =
        format!("the vault has something else than record {record} commits to, which is not shown");
    Failure::Audit { path: home.to_path_buf(), problem }
}
