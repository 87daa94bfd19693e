//! A folder for the demo alone, gone when it ends.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use syscap::{SystemEntropy, kernel::ports::Entropy as _};

use crate::{exit::Failure, output::hex};

/// What the file outside holds.
pub(super) const SECRET: &str = "the secret that no agent is to see\n";

/// A folder that this process made, with a name that nobody can guess.
pub(super) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(super) fn new() -> Result<Self, Failure> {
        let mut random = [0; 8];
        SystemEntropy.fill(&mut random).map_err(syscap::Error::from)?;
        let path = std::env::temp_dir().join(format!("syscap-demo-{}", hex(&random)));
        // Not recursive, so it fails where something has this name, a link included.
        DirBuilder::new().mode(0o700).create(&path).map_err(Failure::file(&path))?;
        // Without links in it, as the attempts name it.
        match fs::canonicalize(&path) {
            Ok(path) => Ok(Self { path }),
            Err(error) => {
                drop(fs::remove_dir(&path));
                Err(Failure::file(&path)(error))
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file outside all that agents are granted.
    pub(super) fn secret(&self) -> Result<PathBuf, Failure> {
        let folder = self.path.join("outside");
        let file = folder.join("secret.txt");
        fs::create_dir(&folder).map_err(Failure::file(&folder))?;
        fs::write(&file, SECRET).map_err(Failure::file(&file))?;
        Ok(file)
    }

    /// Removes it, and says so where that fails.
    pub(super) fn remove(self) -> Result<(), Failure> {
        let removed = fs::remove_dir_all(&self.path);
        removed.map_err(Failure::file(&self.path))
    }
}

impl Drop for Scratch {
    /// For a demo that breaks off. There is nobody left to tell.
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            crate::exit::diagnose(&format!("{} is left behind", self.path.display()));
        }
    }
}
