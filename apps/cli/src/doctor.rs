//! `syscap doctor`: whether machine and home are fit for work.

mod boundary;
mod findings;
mod holder;
mod home;
mod keys;
mod machine;

use std::path::PathBuf;

use clap::Args;

use self::findings::Findings;
use crate::{
    exit::{Ended, Exit},
    output::Out,
};

/// What to look at besides the machine.
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// A home. It is only read, also beside the process that holds it.
    home: Option<PathBuf>,
}

impl Doctor {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let mut findings = Findings { out, bad: 0 };
        machine::look(&mut findings)?;
        boundary::look(&mut findings)?;
        if let Some(folder) = &self.home {
            home::look(&mut findings, folder)?;
        }
        Ok(if findings.bad == 0 { Exit::Done } else { Exit::Failed })
    }
}
