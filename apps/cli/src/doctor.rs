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
        let machine = container::look();
        machine::look(&mut findings, &machine)?;
        clients::hooks(&mut findings)?;
        if let Some(folder) = &self.home {
            home::look(&mut findings, folder, &machine)?;
        }
        Ok(if findings.bad == 0 { Exit::Done } else { Exit::Failed })
    }
}
