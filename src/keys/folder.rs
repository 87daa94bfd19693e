//! Keys in a folder, one file a role.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use syscap_audit::disk;
use syscap_format::{PublicKey, Role, Roles, Signature};
use syscap_kernel::Entropy;

use crate::driver::entropy::SystemEntropy;
use crate::error::{Error, at};
use crate::keys::file::sync_folder_of;
use crate::keys::seal::{Passphrase, Seal};
use crate::keys::{KeyFile, KeyUse, SecretKey, Signer, SignerError};

/// Asks a person for the passphrase of a key.
pub trait Passphrases: Send + Sync {
    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// [`SignerError::Sealed`] where nobody can be asked, or nobody answers.
    fn ask(&self, key_use: KeyUse) -> Result<Passphrase, SignerError>;
}

/// There is no person.
struct Nobody;

impl Passphrases for Nobody {
    fn ask(&self, key_use: KeyUse) -> Result<Passphrase, SignerError> {
        Err(SignerError::Sealed(key_use))
    }
}

/// Keys in a folder, one [`KeyFile`] a role, readable by their owner only.
///
/// A sealed key signs once somebody was asked for its passphrase, and until this is dropped; as
/// it is opened nobody is asked, and [`SignerError::Sealed`] is the answer.
///
/// By default the folder lies in the home. That protects what is not sealed against nobody who
/// owns the folder; [`crate::Options::signer`] puts the keys elsewhere.
pub struct FileKeys {
    folder: PathBuf,
    passphrases: Box<dyn Passphrases>,
    held: Mutex<Vec<Held>>,
    /// Roles whose file was there when this was opened, and could not be read or was no key file of
    /// theirs.
    unusable: Vec<(Role, SignerError)>,
    /// The holder key, once it was needed.
    holder: Mutex<Option<Arc<SecretKey>>>,
}

#[derive(Clone)]
struct Held {
    role: Role,
    file: KeyFile,
    /// `None` while it is sealed.
    secret: Option<Arc<SecretKey>>,
}

impl FileKeys {
    /// Makes the keys of the five roles in a folder that must not exist yet. The keys of
    /// [`KeyUse::SEALED`] are sealed; until this value is dropped they sign all the same.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Entropy`] or [`Error::Signer`].
    pub fn create(folder: &Path, seal: &Seal, entropy: &dyn Entropy) -> Result<Self, Error> {
        fs::DirBuilder::new().mode(0o700).create(folder).map_err(at(folder))?;
        let mut held = Vec::new();
        for role in Role::IN_USE {
            let key_use = KeyUse::Role(role);
            let seal = if KeyUse::SEALED.contains(&key_use) { seal } else { &Seal::Open };
            let (file, secret) = KeyFile::generate(key_use, seal, entropy)?;
            file.write_new(&key_use.path(folder))?;
            held.push(Held { role, file, secret: Some(Arc::new(secret)) });
        }
        sync_folder_of(folder)?;
        Ok(Self::of(folder, held))
    }

    /// Reads the keys that are there; a role whose file is missing, can't be read, or is no key file
    /// of that role, can't sign. The others can: a stop must not wait until somebody has mended a
    /// file.
    ///
    /// # Errors
    /// [`Error::Signer`].
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let (mut held, mut unusable) = (Vec::new(), Vec::new());
        for role in Role::IN_USE {
            match KeyFile::find(&KeyUse::Role(role).path(folder), KeyUse::Role(role)) {
                Ok(Some(file)) => held.push(Held::new(role, file)?),
                Ok(None) => {}
                Err(Error::KeyFile { .. }) => unusable.push((role, SignerError::BadKey)),
                Err(Error::File { .. }) => unusable.push((role, SignerError::Unreadable(role))),
                Err(error) => return Err(error),
            }
        }
        Ok(Self { unusable, ..Self::of(folder, held) })
    }

    fn of(folder: &Path, held: Vec<Held>) -> Self {
        let (folder, passphrases) = (folder.to_path_buf(), Box::new(Nobody));
        let (held, holder) = (Mutex::new(held), Mutex::default());
        Self { folder, passphrases, held, unusable: Vec::new(), holder }
    }

    /// Asks there for the passphrases of sealed keys. A runtime that is given such keys waits for
    /// the answer whenever one of them must sign.
    #[must_use]
    pub fn asking(mut self, passphrases: impl Passphrases + 'static) -> Self {
        self.passphrases = Box::new(passphrases);
        self
    }

    /// True if a role needs a person to sign.
    #[must_use]
    pub fn needs_person(&self, role: Role) -> bool {
        self.find(role).is_ok_and(|held| held.secret.is_none())
    }

    fn find(&self, role: Role) -> Result<Held, SignerError> {
        let held = self.lock();
        let unusable = self.unusable.iter().find(|(of, _)| *of == role);
        let missing = || unusable.map_or(SignerError::NoKey, |(_, why)| *why);
        held.iter().find(|held| held.role == role).cloned().ok_or_else(missing)
    }

    /// The key. It holds no lock while a person is asked.
    fn secret(&self, role: Role) -> Result<Arc<SecretKey>, SignerError> {
        let Held { file, secret, .. } = self.find(role)?;
        if let Some(secret) = secret {
            return Ok(secret);
        }
        let passphrase = self.passphrases.ask(file.key_use())?;
        let secret = Arc::new(file.unseal(&passphrase)?);
        let same =
            |held: &&mut Held| held.role == role && held.file.public_key() == secret.public_key();
        if let Some(held) = self.lock().iter_mut().find(same) {
            held.secret = Some(Arc::clone(&secret));
        }
        Ok(secret)
    }

    /// The file of a role whose key is on record: its own, or the one that is to follow it.
    fn on_record(&self, role: Role, on_record: &Roles) -> Option<Held> {
        let key_use = KeyUse::Role(role);
        let paths = [key_use.path(&self.folder), next_path(&self.folder, role)];
        // What can't be read can't sign, and whoever asks it to is told.
        let files = paths.iter().filter_map(|path| KeyFile::read_as(path, key_use).ok());
        let mut known = files.filter(|file| on_record.holds(role, &file.public_key()));
        known.next().and_then(|file| Held::new(role, file).ok())
    }

    /// The holder key: the one that lies here, else a new one. Its signatures give no more than a
    /// delegable token gives already, so it is never sealed.
    fn holder(&self) -> Result<Arc<SecretKey>, SignerError> {
        let mut holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(holder) = &*holder {
            return Ok(Arc::clone(holder));
        }
        let path = KeyUse::Holder.path(&self.folder);
        let found = KeyFile::find(&path, KeyUse::Holder).map_err(|_| SignerError::BadKey)?;
        let key = match found {
            Some(file) => file.open()?,
            None => made(&path)?,
        };
        Ok(Arc::clone(holder.insert(Arc::new(key))))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Held>> {
        // Every change is one step that can't break off half way.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn new(role: Role, file: KeyFile) -> Result<Self, SignerError> {
        let secret = match file.open() {
            Ok(secret) => Some(Arc::new(secret)),
            Err(SignerError::Sealed(_)) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { role, file, secret })
    }
}

impl Signer for FileKeys {
    fn public_key(&self, role: Role) -> Result<PublicKey, SignerError> {
        self.find(role).map(|held| held.file.public_key())
    }

    fn sign(&self, role: Role, message: &[u8]) -> Result<Signature, SignerError> {
        self.secret(role).map(|secret| secret.sign(message))
    }

    fn holder_key(&self) -> Result<PublicKey, SignerError> {
        self.holder().map(|holder| holder.public_key())
    }

    fn sign_as_holder(&self, message: &[u8]) -> Result<Signature, SignerError> {
        self.holder().map(|holder| holder.sign(message))
    }

    fn prepare(&self, role: Role) -> Result<(), SignerError> {
        self.secret(role).map(drop)
    }

    fn renew(&self, on_record: &Roles) {
        for role in Role::IN_USE {
            let known = |key: &PublicKey| on_record.holds(role, key);
            if self.public_key(role).is_ok_and(|key| known(&key)) {
                continue;
            }
            if let Some(found) = self.on_record(role, on_record) {
                let mut held = self.lock();
                held.retain(|held| held.role != role);
                held.push(found);
            }
        }
    }
}

/// Makes the holder key of a home that has none, and its file durable; where another process has
/// made one meanwhile, that one's.
fn made(path: &Path) -> Result<SecretKey, SignerError> {
    let bad = |_| SignerError::BadKey;
    let made = KeyFile::generate(KeyUse::Holder, &Seal::Open, &SystemEntropy);
    let (file, key) = made.map_err(bad)?;
    match file.write_new(path) {
        Ok(()) => {
            sync_folder_of(path).map_err(bad)?;
            Ok(key)
        }
        Err(Error::File { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
            KeyFile::read_as(path, KeyUse::Holder).map_err(bad)?.open()
        }
        Err(error) => Err(bad(error)),
    }
}

/// A role's next key, from before it is on record until it has taken the old one's place.
///
/// The new file is durable before the record is asked for, and takes the name of the old one only
/// when the record is durable: whatever breaks off in between, one of the two files is that of the
/// key on record, and [`FileKeys`] finds it. One that was left is taken up by the next rotation.
pub struct Rotation {
    folder: PathBuf,
    role: Role,
    next: KeyFile,
    /// Held until the end: two that rotate would leave one of their keys behind.
    _lock: File,
}

impl Rotation {
    /// Takes up what lies there, else what `make` makes. Any writer of the folder may have put it
    /// there: check the [leftovers](Self::left) before it comes on record.
    ///
    /// # Errors
    /// [`Error::KeysBusy`] where another process rotates here; [`Error::File`];
    /// [`Error::KeyFile`]; what `make` says.
    pub fn begin(
        folder: &Path,
        role: Role,
        make: impl FnOnce() -> Result<KeyFile, Error>,
    ) -> Result<Self, Error> {
        let lock = lock(folder)?;
        let next = match Self::left(folder, role)? {
            Some(next) => next,
            None => make_next(folder, role, make)?,
        };
        Ok(Self { folder: folder.to_path_buf(), role, next, _lock: lock })
    }

    /// Takes up nothing: what `make` makes comes in the place of a next key that lies there, which
    /// is lost. For whoever takes a home back: what lies there may be a thief's.
    ///
    /// # Errors
    /// As [`Rotation::begin`].
    pub fn anew(
        folder: &Path,
        role: Role,
        make: impl FnOnce() -> Result<KeyFile, Error>,
    ) -> Result<Self, Error> {
        let lock = lock(folder)?;
        let next = make_next(folder, role, make)?;
        Ok(Self { folder: folder.to_path_buf(), role, next, _lock: lock })
    }

    /// The next key of a role that an earlier rotation left, if one did.
    ///
    /// # Errors
    /// [`Error::File`] or [`Error::KeyFile`].
    pub fn left(folder: &Path, role: Role) -> Result<Option<KeyFile>, Error> {
        KeyFile::find(&next_path(folder, role), KeyUse::Role(role))
    }

    /// The key.
    #[must_use]
    pub const fn next(&self) -> &KeyFile {
        &self.next
    }

    /// Its record was refused: nobody has the key, and its file goes.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn abandon(self) -> Result<(), Error> {
        let path = next_path(&self.folder, self.role);
        fs::remove_file(&path).map_err(at(&path))?;
        sync_folder_of(&path)
    }

    /// Its record is durable: the file takes the old one's place, which is lost.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn finish(self) -> Result<(), Error> {
        let path = KeyUse::Role(self.role).path(&self.folder);
        fs::rename(next_path(&self.folder, self.role), &path).map_err(at(&path))?;
        sync_folder_of(&path)
    }
}

/// How often the lock is asked for, and the pause between two.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// One process rotates in a folder at a time.
pub(super) fn lock(folder: &Path) -> Result<File, Error> {
    // Its owner may have taken the keys away, folder and all.
    disk::make_folder(folder).map_err(at(folder))?;
    let lock = File::open(folder).map_err(at(folder))?;
    for _ in 0..LOCK_TRIES {
        match lock.try_lock() {
            Ok(()) => {
                disk::sweep(folder).map_err(at(folder))?;
                return Ok(lock);
            }
            // What this process has let go another may hold that it has just forked, until that has
            // its own program.
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(at(folder)(error)),
        }
    }
    Err(Error::KeysBusy(folder.to_path_buf()))
}

/// Makes a role's next key, and its file durable.
fn make_next(
    folder: &Path,
    role: Role,
    make: impl FnOnce() -> Result<KeyFile, Error>,
) -> Result<KeyFile, Error> {
    let (next, path) = (make()?, next_path(folder, role));
    if next.key_use() != KeyUse::Role(role) {
        return Err(SignerError::BadKey.into());
    }
    // Written under another name: what has this one is whole.
    let part = path.with_extension("part");
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&part)(error)),
        _ => {}
    }
    next.write_new(&part)?;
    fs::rename(&part, &path).map_err(at(&path))?;
    sync_folder_of(&path)?;
    Ok(next)
}

fn next_path(folder: &Path, role: Role) -> PathBuf {
    folder.join(format!("{}.key.next", role.name()))
}
