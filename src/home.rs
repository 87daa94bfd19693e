//! The folder of a home, and what lies where in it.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
};

use syscap_audit::sqlite::DATABASE_FILE;
use syscap_syscalls::{beneath::Base, fs::Files};

use crate::{
    error::{Error, at},
    keys::write_new,
};

/// The folder of a home.
///
/// | name | what |
/// |---|---|
/// | `home.db` | the log, the control documents and the vault |
/// | `lock` | held by the process that has the home open |
/// | `reserve` | room for the last records when the disk is full |
/// | `keys/` | the keys of the roles, unless they lie elsewhere |
/// | `trust.cbor` | what a verifier needs to anchor the log |
/// | `base` | where the agents' files lie, if not in `files/` |
/// | `files/` | the agents' files |
#[derive(Clone, Debug)]
pub struct Home {
    folder: PathBuf,
}

impl Home {
    /// The home in a folder, which need not exist.
    #[must_use]
    pub fn at(folder: impl AsRef<Path>) -> Self {
        Self { folder: folder.as_ref().to_path_buf() }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the keys lie by default.
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.folder.join("keys")
    }

    /// Where the trust file lies.
    #[must_use]
    pub fn trust(&self) -> PathBuf {
        self.folder.join("trust.cbor")
    }

    /// Where the agents' files lie.
    ///
    /// # Errors
    /// [`Error::File`] where the home says, and it can't be read.
    pub fn base(&self) -> Result<PathBuf, Error> {
        let path = self.folder.join("base");
        match fs::read(&path) {
            Ok(bytes) => Ok(PathBuf::from(OsStr::from_bytes(&bytes))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(self.folder.join("files"))
            }
            Err(error) => Err(at(&path)(error)),
        }
    }

    /// Makes the folder, for its owner only; one that is there must be empty, or a home.
    pub(crate) fn make(&self) -> Result<(), Error> {
        if let Some(parent) = self.folder.parent() {
            fs::create_dir_all(parent).map_err(at(parent))?;
        }
        match fs::create_dir(&self.folder) {
            Ok(()) => fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o700))
                .map_err(at(&self.folder)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let mut entries = fs::read_dir(&self.folder).map_err(at(&self.folder))?;
                // The store says better what is wrong with making a home in a home.
                if entries.next().is_none() || self.folder.join(DATABASE_FILE).exists() {
                    return Ok(());
                }
                Err(Error::NotEmpty(self.folder.clone()))
            }
            Err(error) => Err(at(&self.folder)(error)),
        }
    }

    /// Where the agents' files are to lie. It is looked at before anything is made, so that a
    /// base that can't be used leaves no half-made home.
    pub(crate) fn check_base(&self, base: &BasePlace) -> Result<(), Error> {
        match base {
            BasePlace::InHome => Ok(()),
            BasePlace::Elsewhere(path) => self.apart(&Base::open(path)?, path),
        }
    }

    /// Settles where the agents' files lie, and makes the folder of the default base.
    pub(crate) fn settle_base(&self, base: &BasePlace) -> Result<(), Error> {
        match base {
            BasePlace::InHome => {
                let files = self.folder.join("files");
                fs::create_dir_all(&files).map_err(at(&files))
            }
            BasePlace::Elsewhere(path) => {
                let absolute = fs::canonicalize(path).map_err(at(path))?;
                write_new(&self.folder.join("base"), absolute.as_os_str().as_bytes())
            }
        }
    }

    /// Opens the base, unless an agent could reach the home by it.
    pub(crate) fn open_files(&self) -> Result<Files, Error> {
        let path = self.base()?;
        let base = Base::open(&path)?;
        if path != self.folder.join("files") {
            self.apart(&base, &path)?;
        }
        Ok(Files::over(base))
    }

    /// Neither lies in the other. By inode and not by name: a link has other names for the same
    /// folder.
    fn apart(&self, base: &Base, path: &Path) -> Result<(), Error> {
        let home = Base::open(&self.folder)?;
        if base.contains(&home)? || home.contains(base)? {
            return Err(Error::BaseContainsHome(path.to_path_buf()));
        }
        Ok(())
    }
}

/// Where the agents' files are to lie.
#[derive(Clone, Debug, Default)]
pub(crate) enum BasePlace {
    /// In `files/` in the home.
    #[default]
    InHome,
    /// In a folder that exists.
    Elsewhere(PathBuf),
}
