//! `syscap doctor`: whether machine and home are fit for work.

mod clients;
mod confined;
mod container;
mod findings;
mod holder;
mod home;
mod keys;
mod machine;
mod mounts;
mod storage;
mod work;

use std::path::PathBuf;

use clap::Args;

use self::findings::Findings;
use crate::exit::{Ended, Exit};
use crate::output::Out;

/// Check this machine and a home: the first line says whether all is well.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  syscap doctor home --all

doctor prints problems, and with --all also notes and the checks that passed. Exit code 1: there is
a problem.")]
pub(crate) struct Doctor {
    /// A home. doctor only reads it, also while another process serves it.
    home: Option<PathBuf>,
    /// Show the notes and the checks that passed, too.
    #[arg(long)]
    all: bool,
}

impl Doctor {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let mut findings = Findings::new(out);
        let machine = container::look();
        machine::look(&mut findings, &machine)?;
        clients::hooks(&mut findings)?;
        if let Some(folder) = &self.home {
            home::look(&mut findings, folder, &machine)?;
        }
        Ok(if findings.end(self.all)? { Exit::Done } else { Exit::Failed })
    }
}
