//! The folder of a home, and what lies where in it.

pub(crate) mod claim;
pub(crate) mod engine;
pub(crate) mod files;
pub(crate) mod options;
pub(crate) mod serving;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::inspect::verify::Trust;
use syscap_audit::disk::{self, DATABASE_FILE};
use syscap_audit::{HomeLock, LOCK_FILE};
use syscap_syscalls::beneath::{self, FsError, Location, Opener, Openers};
use syscap_syscalls::fs::Files;

use rustix::process::geteuid;

use crate::error::{Error, at};
use crate::home::claim::Claimed;
use crate::home::files::{read_small, write_new};

/// The folder of a home.
///
/// | name | what |
/// |---|---|
/// | `home.db` | the log, the control documents and the vault, unless the host's store has them |
/// | `home.db-lock` | held by the one that writes the database |
/// | `lock` | held by the process that has the home open, whatever its store is |
/// | `reserve` | room for the last records when the disk is full |
/// | `keys/` | the keys of the roles, unless they lie elsewhere |
/// | `secrets/` | what tools may send to servers, sealed by `keys/secrets.key` |
/// | `trust.cbor` | what a verifier needs to anchor the log |
/// | `socket` | where the holder serves the home to other processes |
/// | `base` | where the agents' files lie, if not in `files/` |
/// | `shared-base` | there where that base is another home's: this one's agents have folders beside those |
/// | `opener` | what must open the agents' files, where not whatever the system has |
/// | `server` | how the home is served, where that was said |
/// | `server.log` | the words of a server that a client started |
/// | `runs/` | what runs that have not ended noted of their workspaces |
/// | `files/` | the agents' files |
#[derive(Clone, Debug)]
pub struct Home {
    folder: PathBuf,
}

impl Home {
    /// The home in a folder, which need not exist.
    pub fn at(folder: impl AsRef<Path>) -> Self {
        Self { folder: folder.as_ref().to_path_buf() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The default folder of the keys.
    pub fn keys(&self) -> PathBuf {
        self.folder.join("keys")
    }

    /// The path of the trust file.
    pub fn trust(&self) -> PathBuf {
        self.folder.join("trust.cbor")
    }

    /// The trust file in the home; `None` where there is none.
    pub(crate) fn read_trust(&self) -> Result<Option<Trust>, Error> {
        let path = self.trust();
        match read_small(&path) {
            Ok(bytes) => Trust::from_bytes(&bytes).map(Some).map_err(|_| Error::Trust(path)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at(&path)(error)),
        }
    }

    /// The folder of the agents' files.
    ///
    /// # Errors
    /// [`Error::File`] where the home says, and it can't be read.
    pub fn base(&self) -> Result<PathBuf, Error> {
        let path = self.folder.join("base");
        match read_small(&path) {
            Ok(bytes) => Ok(PathBuf::from(OsStr::from_bytes(&bytes))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(self.folder.join("files"))
            }
            Err(error) => Err(at(&path)(error)),
        }
    }

    /// The file backend that the home requires.
    ///
    /// # Errors
    /// [`Error::File`] where the home says, and it can't be read or says what is not known.
    pub fn openers(&self) -> Result<Openers, Error> {
        let path = self.opener();
        let unknown = || std::io::Error::new(std::io::ErrorKind::InvalidData, "no such opener");
        match read_small(&path) {
            Ok(bytes) => {
                let name = std::str::from_utf8(&bytes).ok();
                name.and_then(|name| Openers::named(name.trim_ascii())).ok_or_else(unknown)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Openers::default()),
            Err(error) => Err(error),
        }
        .map_err(at(&path))
    }

    fn opener(&self) -> PathBuf {
        self.folder.join("opener")
    }

    /// Makes the folder, for its owner only; one that is there must be empty, or a home, or hold
    /// what the host's store put there.
    pub(crate) fn make(&self, kept: Kept) -> Result<(), Error> {
        let was_there = self.folder.is_dir();
        // Its owner could put another in the place of what is made there.
        self.is_ours("")?;
        disk::make_folder(&self.folder).map_err(at(&self.folder))?;
        if was_there && kept == Kept::ByHost {
            return Ok(());
        }
        let mut entries = fs::read_dir(&self.folder).map_err(at(&self.folder))?;
        if entries.next().is_none() {
            return fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o700))
                .map_err(at(&self.folder));
        }
        // The store says better what is wrong with making a home in a home.
        if self.folder.join(DATABASE_FILE).exists() {
            return Ok(());
        }
        Err(Error::NotEmpty(self.folder.clone()))
    }

    /// Takes the home, whatever its store is. If the store is the home's database, a folder without
    /// one is left unchanged.
    pub(crate) fn lock(&self, kept: Kept) -> Result<HomeLock, Error> {
        let file = match kept {
            Kept::InHome => {
                if let Err(error) = disk::expect_database(&self.folder) {
                    // Another's folder lets nobody look.
                    self.is_ours("")?;
                    return Err(error.into());
                }
                DATABASE_FILE
            }
            Kept::ByHost => LOCK_FILE,
        };
        self.is_ours(file)?;
        Ok(HomeLock::take(&self.folder)?)
    }

    /// Checks that a file of it is this user's: its owner could not use what another makes here. The
    /// folder may be another's, who lets this user write there, as a mounted volume's root is.
    fn is_ours(&self, file: &str) -> Result<(), Error> {
        // What is not there is nobody's yet.
        let Ok(found) = fs::metadata(self.folder.join(file)) else { return Ok(()) };
        match found.uid() {
            owner if owner == geteuid().as_raw() => Ok(()),
            owner => Err(Error::NotOwner { home: self.folder.clone(), owner }),
        }
    }

    /// Checks the folder for the agents' files. It is looked at before anything is made, so that a
    /// base that can't be used leaves no half-made home.
    pub(crate) fn check_base(&self, base: &BasePlace) -> Result<(), Error> {
        let path = base.folder.as_ref().unwrap_or(&self.folder);
        let opened = beneath::open_by(base.openers, path)?;
        let Some(path) = &base.folder else { return Ok(()) };
        self.apart(&*opened, path)
    }

    /// Settles where the agents' files lie and what opens them, and makes the folder of the
    /// default base.
    pub(crate) fn settle_base(&self, base: &BasePlace) -> Result<(), Error> {
        if base.openers != Openers::default() {
            write_new(&self.opener(), base.openers.name().as_bytes())?;
        }
        match &base.folder {
            None => {
                let files = self.folder.join("files");
                disk::make_folder(&files).map_err(at(&files))
            }
            Some(path) => {
                let absolute = fs::canonicalize(path).map_err(at(path))?;
                write_new(&self.folder.join("base"), absolute.as_os_str().as_bytes())
            }
        }
    }

    /// Opens the base, unless an agent could reach the home by it.
    pub(crate) fn open_files(&self) -> Result<Files, Error> {
        self.open_files_by(self.openers()?)
    }

    /// The same by what there is, to look at what is on record: nothing of it is run.
    pub(crate) fn look_at_files(&self) -> Result<Files, Error> {
        self.open_files_by(Openers::Strongest)
    }

    fn open_files_by(&self, openers: Openers) -> Result<Files, Error> {
        let path = self.base()?;
        let base = beneath::open_by(openers, &path)?;
        // The default base is the folder of that name itself; a link of that name is no such.
        let own = path == self.folder.join("files")
            && fs::symlink_metadata(&path).map_err(at(&path))?.is_dir();
        if !own {
            self.apart(&*base, &path)?;
        }
        Ok(Files::over(base))
    }

    /// Neither lies in the other. By inode and not by name: a link has other names for the same
    /// folder.
    fn apart(&self, base: &dyn Opener, path: &Path) -> Result<(), Error> {
        let home = beneath::open(&self.folder)?;
        if base.contains(&*home)? || home.contains(base)? {
            return Err(Error::BaseContainsHome(path.to_path_buf()));
        }
        // Nor may it be, or lie in, any other home: nothing in it would be opened.
        let real = fs::canonicalize(path).map_err(at(path))?;
        let is_home = |folder: &Path| {
            let seen = beneath::open(folder).and_then(|base| base.visit(&Location::default()));
            seen == Err(FsError::Home)
        };
        if real.ancestors().any(|folder| folder.join(DATABASE_FILE).exists() || is_home(folder)) {
            return Err(Error::BaseContainsHome(path.to_path_buf()));
        }
        Ok(())
    }

    /// Looks at the root that a path in a grant begins with. A home is no root for agents, nor does
    /// one lie on the way; what becomes one later is not opened.
    pub(crate) fn check_root(&self, files: &Files, path: &str) -> Result<(), Error> {
        match files.check_root(path) {
            Err(FsError::Home) => Err(Error::BaseContainsHome(self.base()?.join(path))),
            checked => Ok(checked?),
        }
    }
}

/// The keeper of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The database of the home.
    InHome,
    /// A store that the host gave.
    ByHost,
}

/// The folder of the agents' files, and its file backend.
#[derive(Clone, Debug, Default)]
pub(crate) struct BasePlace {
    /// A folder that exists, if not `files/` in the home.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) openers: Openers,
    pub(crate) claimed: Claimed,
}
