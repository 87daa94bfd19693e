//! A home's claim on its base: what the tools keep for agents lies there under the agents' names, so
//! two homes over one base would read and change each other's.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use syscap_audit::disk::{self, DATABASE_FILE};
use syscap_format::{Canonical, Decoder, Encoder, HomeId, Profile};
use syscap_syscalls::beneath::{AGENTS, Agents, OF};
use syscap_syscalls::fs::Files;

use crate::error::{Error, at};
use crate::home::Home;
use crate::home::files::read_small;

/// The claim, in the folder of the agents' folders. No grant reaches that.
const CLAIM: &str = ".home";
/// In a home: its agents' folders lie beside those of the base's home.
const SHARES: &str = "shared-base";
/// Version of a claim's form.
const VERSION: u64 = 1;
/// How often a claim is tried for.
const TRIES: u32 = 4;

/// What is done about a base that another home has claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// It is left, and this home is not opened.
    #[default]
    Refuse,
    /// This home's agents get folders beside the other's.
    Share,
    /// It is taken, if the other home is gone.
    Take,
}

/// The claim of a home that is held; until this is dropped no other process makes it.
#[derive(Debug)]
pub(crate) struct Held {
    claim: Option<File>,
}

impl Drop for Held {
    fn drop(&mut self) {
        // A process that was just forked has the file open too: closing does not free it. Where this
        // fails the end of all of them does.
        if let Some(claim) = &self.claim {
            rustix::fs::flock(claim, FlockOperation::Unlock).unwrap_or(());
        }
    }
}

/// Whose a base is, as its claim says: a canonical array of version, home, device, inode, path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Claim {
    home: HomeId,
    /// Of the home's folder: of two copies of one home only one has them.
    device: u64,
    inode: u64,
    folder: PathBuf,
}

impl Claim {
    fn to_bytes(&self) -> Vec<u8> {
        let mut encoder = Encoder::new();
        encoder.array(5);
        encoder.uint(VERSION);
        encoder.bytes(self.home.as_bytes());
        encoder.uint(self.device);
        encoder.uint(self.inode);
        encoder.bytes(self.folder.as_os_str().as_bytes());
        encoder.into_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let whole = Canonical::check(bytes.to_vec(), Profile::CONTROL).ok()?;
        let mut decoder = Decoder::new(whole.as_bytes(), Profile::CONTROL);
        if decoder.array().ok()? != 5 || decoder.uint().ok()? != VERSION {
            return None;
        }
        let home = HomeId::from_bytes(decoder.item().ok()?.as_byte_string()?.try_into().ok()?);
        let (device, inode) = (decoder.uint().ok()?, decoder.uint().ok()?);
        let folder = decoder.item().ok()?.as_byte_string()?.to_vec();
        decoder.finish().ok()?;
        let folder = PathBuf::from(std::ffi::OsString::from_vec(folder));
        Some(Self { home, device, inode, folder })
    }

    /// The claim that stands in a file; one that can't be read is an error, not none.
    fn read(path: &Path) -> Result<Option<Self>, Error> {
        match read_small(path) {
            Ok(bytes) => {
                let unknown = || io::Error::new(io::ErrorKind::InvalidData, "no claim of a home");
                Self::from_bytes(&bytes).map(Some).ok_or_else(unknown).map_err(at(path))
            }
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(at(path)(error)),
        }
    }

    /// True if the home that it names is there, or may be: in doubt nothing is taken from it.
    fn stands(&self) -> bool {
        let found = match fs::metadata(&self.folder) {
            Ok(found) => (found.dev(), found.ino()) == (self.device, self.inode),
            Err(error) => return !is_gone(&error),
        };
        match Home::at(&self.folder).read_trust() {
            Ok(Some(trust)) => trust.home == self.home,
            Ok(None) => found && self.folder.join(DATABASE_FILE).exists(),
            Err(_) => true,
        }
    }
}

/// What there is of a claim, to one home.
enum Standing {
    /// This home's, as it stands.
    Own,
    /// This home's, of where it was before.
    Moved,
    /// Nobody's.
    Free,
    /// Another's.
    Other(Claim),
}

impl Home {
    /// True where the base is a folder of the operator's on which no home has a claim.
    ///
    /// # Errors
    /// [`Error::File`] where that can't be read.
    pub fn base_is_unclaimed(&self) -> Result<bool, Error> {
        if !self.folder.join("base").exists() {
            return Ok(false);
        }
        Ok(Claim::read(&self.base()?.join(AGENTS).join(CLAIM))?.is_none())
    }

    /// Whether its base can be used, before anything of the home is made: a base of its own can.
    pub(crate) fn check_claim(&self, base: &Path, claimed: Claimed) -> Result<(), Error> {
        let path = base.join(AGENTS).join(CLAIM);
        match (Claim::read(&path)?, claimed) {
            (None, _) | (Some(_), Claimed::Share) => Ok(()),
            (Some(other), Claimed::Take) if !other.stands() => Ok(()),
            (Some(other), _) => Err(self.taken(base, other)),
        }
    }

    /// Claims the base, unless it is the home's own folder, and settles where the agents' folders
    /// lie. A base on which no claim can be made is only read below those.
    ///
    /// # Errors
    /// [`Error::BaseTaken`] for another home's base; [`Error::BaseBusy`] where another process holds
    /// the claim.
    pub(crate) fn claim(
        &self,
        files: &Files,
        id: &HomeId,
        claimed: Claimed,
    ) -> Result<Held, Error> {
        let base = self.base()?;
        if !self.folder.join("base").exists() {
            files.base().settle(Agents::Own);
            return Ok(Held { claim: None });
        }
        let shares = self.folder.join(SHARES);
        let (own, beside) = (base.join(AGENTS), base.join(AGENTS).join(OF).join(id.to_string()));
        if !shares.exists() {
            match self.make_claim(&own, id, claimed == Claimed::Take)? {
                Made::Held(claim) => {
                    files.base().settle(Agents::Own);
                    return Ok(Held { claim: Some(claim) });
                }
                Made::ReadOnly => {
                    files.base().settle(Agents::Nobodys);
                    return Ok(Held { claim: None });
                }
                Made::Others(_) if claimed == Claimed::Share => {
                    disk::write_new(&shares, b"").map_err(at(&shares))?;
                }
                Made::Others(other) => return Err(self.taken(&base, other)),
            }
        }
        let agents = Agents::Of(id.to_string().into_boxed_str());
        match self.make_claim(&beside, id, false)? {
            Made::Held(claim) => {
                files.base().settle(agents);
                Ok(Held { claim: Some(claim) })
            }
            // Its folders are there, or it has none: nothing is written either way.
            Made::ReadOnly => {
                files.base().settle(agents);
                Ok(Held { claim: None })
            }
            Made::Others(other) => Err(self.taken(&base, other)),
        }
    }

    /// Makes the claim that lies in a folder, and locks it.
    fn make_claim(&self, folder: &Path, id: &HomeId, take: bool) -> Result<Made, Error> {
        let path = folder.join(CLAIM);
        let mine = self.mine(id)?;
        // Whoever is quicker makes another try necessary, and no more than one.
        for _ in 0..TRIES {
            let standing = match standing(Claim::read(&path)?, &mine) {
                Standing::Other(other) if !take || other.stands() => {
                    return Ok(Made::Others(other));
                }
                Standing::Free => match claim_anew(folder, &path, &mine) {
                    Ok(()) => Standing::Own,
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                    Err(error) if is_read_only(&error) => return Ok(Made::ReadOnly),
                    Err(error) => return Err(at(&path)(error)),
                },
                standing => standing,
            };
            let Some(file) = locked(&path)? else { continue };
            if matches!(standing, Standing::Own) {
                return Ok(Made::Held(file));
            }
            match disk::replace(&path, &mine.to_bytes()) {
                Ok(()) => {}
                Err(error) if is_read_only(&error) => return Ok(Made::Held(file)),
                Err(error) => return Err(at(&path)(error)),
            }
        }
        Err(Error::BaseBusy(folder.to_path_buf()))
    }

    fn mine(&self, id: &HomeId) -> Result<Claim, Error> {
        let folder = fs::canonicalize(&self.folder).map_err(at(&self.folder))?;
        let found = fs::metadata(&folder).map_err(at(&folder))?;
        Ok(Claim { home: *id, device: found.dev(), inode: found.ino(), folder })
    }

    fn taken(&self, base: &Path, other: Claim) -> Error {
        Error::BaseTaken {
            base: base.to_path_buf(),
            by: other.home,
            there: other.folder,
            home: self.folder.clone(),
        }
    }
}

/// What came of a claim.
enum Made {
    /// It is this home's, and locked.
    Held(File),
    /// Nothing can be written there.
    ReadOnly,
    /// It is another's.
    Others(Claim),
}

fn standing(there: Option<Claim>, mine: &Claim) -> Standing {
    match there {
        None => Standing::Free,
        Some(claim) if claim == *mine => Standing::Own,
        Some(claim) if claim.home != mine.home => Standing::Other(claim),
        // It was moved: it is the same folder. Or its disk has another number since the machine
        // began anew: it is in the same place.
        Some(claim)
            if (claim.device, claim.inode) == (mine.device, mine.inode)
                || claim.folder == mine.folder =>
        {
            Standing::Moved
        }
        // A copy of a home that is there is another home; one that was restored is not.
        Some(claim) if claim.stands() => Standing::Other(claim),
        Some(_) => Standing::Moved,
    }
}

/// The file of a claim, locked; `None` where another has taken its place.
fn locked(path: &Path) -> Result<Option<File>, Error> {
    let file = match disk::open_regular(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(at(path))?,
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(Error::BaseBusy(path.to_path_buf())),
        Err(errno) => return Err(at(path)(errno.into())),
    }
    let (held, named) = (file.metadata().map_err(at(path))?, fs::symlink_metadata(path));
    let same = named.is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino()));
    Ok(same.then_some(file))
}

/// Makes a claim where none is. Of two who do so at once one gets it.
fn claim_anew(folder: &Path, path: &Path, mine: &Claim) -> io::Result<()> {
    disk::make_folder(folder)?;
    if !fs::symlink_metadata(folder)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "a link, where a folder must be"));
    }
    disk::write_new(path, &mine.to_bytes())
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}
