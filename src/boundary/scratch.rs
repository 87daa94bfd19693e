//! A folder that this process makes for itself, gone when it ends.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, chmod, open};
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
        clear(&self.path).map_err(BoundaryError::file(&self.path))
    }
}

impl Drop for Scratch {
    /// For what breaks off: [`Scratch::remove`] says what is left behind.
    fn drop(&mut self) {
        match clear(&self.path) {
            Ok(()) | Err(_) => {}
        }
    }
}

/// Removes a folder with all in it, however deep: each folder below is moved up before it is looked
/// into, so that no path grows and no handle is kept for each.
fn clear(root: &Path) -> io::Result<()> {
    let mut waiting = vec![root.to_path_buf()];
    let (mut emptied, mut number) = (Vec::new(), 0_u64);
    while let Some(folder) = waiting.pop() {
        open_up(&folder)?;
        // All names first: the root gets new ones meanwhile.
        let entries = fs::read_dir(&folder)?.collect::<io::Result<Vec<_>>>()?;
        for entry in entries {
            if !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
                continue;
            }
            let up = loop {
                number = number.checked_add(1).ok_or(io::ErrorKind::QuotaExceeded)?;
                let up = root.join(format!(".syscap-{number}"));
                // One that is there is the program's own, and is moved in its turn.
                match fs::symlink_metadata(&up) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => break up,
                    Err(error) => return Err(error),
                    Ok(_) => {}
                }
            };
            open_up(&entry.path())?;
            fs::rename(entry.path(), &up)?;
            waiting.push(up);
        }
        emptied.push(folder);
    }
    emptied.iter().rev().try_for_each(fs::remove_dir)
}

/// Gives this user the rights that a program may have taken away. No link is followed.
fn open_up(folder: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = open(folder, flags, Mode::empty())?;
    chmod(format!("/proc/self/fd/{}", opened.as_raw_fd()), Mode::RWXU)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_folder_without_rights_is_removed() {
        let scratch = Scratch::new("test").unwrap();
        let path = scratch.path().to_path_buf();
        let folder = scratch.folder("a").unwrap();
        fs::create_dir(path.join(".syscap-1")).unwrap();
        fs::write(path.join(".syscap-2"), "").unwrap();
        std::os::unix::fs::symlink("/", folder.join("link")).unwrap();
        let deep =
            "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')\nos.chmod('.', 0)";
        let mut python = std::process::Command::new("python3");
        assert!(python.args(["-c", deep]).current_dir(&folder).status().unwrap().success());
        scratch.remove().unwrap();
        assert!(!path.exists());
    }
}
