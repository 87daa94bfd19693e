//! A folder that this process makes for itself, gone when it ends.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use syscap::{SystemEntropy, kernel::Entropy as _};

use crate::exit::{Failure, diagnose};
use crate::output::hex;

/// A folder with a name that nobody can guess, which only this user may enter.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// `what`: what it is for, as its name says.
    pub(crate) fn new(what: &str) -> Result<Self, Failure> {
        let mut random = [0; 8];
        SystemEntropy.fill(&mut random).map_err(syscap::Error::from)?;
        let path = std::env::temp_dir().join(format!("syscap-{what}-{}", hex(&random)));
        // Not recursive, so it fails where something has this name, a link included.
        DirBuilder::new().mode(0o700).create(&path).map_err(Failure::file(&path))?;
        // Without links in it, as those who are held to it name it.
        match fs::canonicalize(&path) {
            Ok(path) => Ok(Self { path }),
            Err(error) => {
                drop(fs::remove_dir(&path));
                Err(Failure::file(&path)(error))
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A new folder in it.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.path.join(name);
        DirBuilder::new().mode(0o700).create(&path).map_err(Failure::file(&path))?;
        Ok(path)
    }

    /// Removes it, and says so where that fails.
    pub(crate) fn remove(self) -> Result<(), Failure> {
        let removed = fs::remove_dir_all(&self.path);
        removed.map_err(Failure::file(&self.path))
    }
}

impl Drop for Scratch {
    /// For what breaks off. There is nobody left to tell.
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            diagnose(&format!("{} is left behind", self.path.display()));
        }
    }
}
