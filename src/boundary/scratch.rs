//! A folder that this process makes for itself, gone when it ends.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use syscap_kernel::Entropy as _;

use super::BoundaryError;
use crate::SystemEntropy;

/// A folder with a name that nobody can guess, which only this user may enter.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes one beneath the system's temporary folder; `what` is a part of its name.
    ///
    /// # Errors
    /// [`BoundaryError::File`].
    pub fn new(what: &str) -> Result<Self, BoundaryError> {
        let mut random = [0; 8];
        let entropy = SystemEntropy.fill(&mut random);
        let temporary = std::env::temp_dir();
        entropy.map_err(|error| BoundaryError::file(&temporary)(io::Error::other(error)))?;
        let number = u64::from_le_bytes(random);
        let path = temporary.join(format!("syscap-{what}-{number:016x}"));
        // Not recursive, so it fails where something has this name, a link included.
        DirBuilder::new().mode(0o700).create(&path).map_err(BoundaryError::file(&path))?;
        // Without links in it, as those who are held to it name it.
        match fs::canonicalize(&path) {
            Ok(path) => Ok(Self { path }),
            Err(error) => {
                drop(fs::remove_dir(&path));
                Err(BoundaryError::file(&path)(error))
            }
        }
    }

    /// Its path, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new folder in it.
    ///
    /// # Errors
    /// [`BoundaryError::File`].
    pub fn folder(&self, name: &str) -> Result<PathBuf, BoundaryError> {
        let path = self.path.join(name);
        DirBuilder::new().mode(0o700).create(&path).map_err(BoundaryError::file(&path))?;
        Ok(path)
    }

    /// Removes it.
    ///
    /// # Errors
    /// [`BoundaryError::File`] where something of it stays.
    pub fn remove(self) -> Result<(), BoundaryError> {
        let removed = fs::remove_dir_all(&self.path);
        removed.map_err(BoundaryError::file(&self.path))
    }
}

impl Drop for Scratch {
    /// For what breaks off: [`Scratch::remove`] says what is left behind.
    fn drop(&mut self) {
        match fs::remove_dir_all(&self.path) {
            Ok(()) | Err(_) => {}
        }
    }
}
