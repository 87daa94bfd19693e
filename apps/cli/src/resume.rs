//! `syscap resume`: the first seed's `resume.json`, read into tokens and written from them.

mod export;
mod import;
pub(crate) mod own;
mod place;

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use clap::Subcommand;
use syscap::resume::{Resume, ResumeError};

use crate::exit::{Ended, Failure};
use crate::output::Out;

/// A command on resumes.
#[derive(Debug, Subcommand)]
pub(crate) enum Resumes {
    /// Issue a token for what each resume permits; prints their ids.
    Import(import::Import),
    /// Write what a token grants into a resume; all else in it stays as it is.
    Export(export::Export),
}

impl Resumes {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        match self {
            Self::Import(import) => import.run(out),
            Self::Export(export) => export.run(out),
        }
    }
}

/// Why a file is no resume that can be used.
#[derive(Debug, thiserror::Error)]
enum Unused {
    /// It can't be read.
    #[error("{0}")]
    File(#[from] io::Error),
    /// It is not understood.
    #[error("{0}")]
    Resume(#[from] ResumeError),
}

/// Reads a resume, and no more of a file than one may have.
fn read(path: &Path) -> Result<Resume, Unused> {
    // Not a pipe, which might never end, nor a device.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file").into());
    }
    let most = u64::try_from(Resume::BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut text = Vec::new();
    fs::File::open(path)?.take(most).read_to_end(&mut text)?;
    Ok(Resume::read(&text)?)
}

/// That no resume of a file can be used.
fn unusable(path: &Path, why: &Unused) -> Failure {
    Failure::Policy { what: path.display().to_string(), problem: why.to_string() }
}
