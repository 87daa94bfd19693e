//! Secrets of a home: what tools send to servers, and nobody is shown.
//!
//! Each is a file in `secrets/`, sealed by XChaCha20-Poly1305 under a key of the home's,
//! `keys/secrets.key`, with its name bound to it. That protects a copy of the home without its
//! keys; who reads both has the secrets. None of it is in the log, in a policy or in a tool's
//! settings: those name it.
//!
//! ```
//! use syscap::{prelude::*, secrets::SecretFiles};
//!
//! # fn main() -> Result<(), Error> {
//! # let folder = tempfile::tempdir().expect("a temporary folder");
//! # let home = folder.path().join("home");
//! Runtime::create(&home)?.close()?;
//! let secrets = SecretFiles::of(&syscap::Home::at(&home));
//! secrets.set("github", "ghp_0123456789abcdef", &["https://api.github.com"])?;
//! assert_eq!(secrets.list()?.len(), 1);
//! secrets.remove("github")?;
//! # Ok(())
//! # }
//! ```

use std::path::{Path, PathBuf};
use std::{fs, io};

use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305};
use syscap_audit::disk;
use syscap_format::field::{Field, shape};
use syscap_format::{Decoder, Encoder, MapBuilder, Profile, Salt, TextHash, text_hash};
use syscap_kernel::Entropy as _;
use syscap_syscalls::net::secret::{Origin, Secret, SecretError, Secrets, is_secret_name};
use zeroize::Zeroizing;

use crate::keys::fields::Fields;
use crate::keys::folder::lock;
use crate::keys::kinds::KeyFileError;
use crate::{Error, Home, SystemEntropy, error::at, home::files::read_small};

/// The domain separator of a sealed secret, before its name.
const CONTEXT: &[u8] = b"syscap/secret/v1\0";
/// The same of a key that a rotation has made.
const NEXT: &[u8] = b"syscap/secrets-key/v1";
/// What a key file says of it.
const USE: &str = "secrets";
const ALGORITHM: &str = "xchacha20-poly1305";
/// How long the file of a key was before it had a form.
const SEED_BYTES: u64 = 32;
/// How often a secret is tried to be opened: a rotation may come between file and key.
const TRIES: u32 = 3;
/// Most servers of a secret.
pub const ORIGINS_MAX: usize = 16;

shape! {
    /// A sealed secret, as it lies there.
    struct SealedSecret {
        1 => version: u64,
        2 => nonce: [u8; 24],
        3 => sealed: Vec<u8>,
    }
}

shape! {
    /// A sealed secret's contents.
    struct Opened {
        1 => value: Box<str>,
        2 => origins: Vec<Box<str>>,
    }
}

/// A secret without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretInfo {
    /// Its name.
    pub name: String,
    /// The servers that it is sent to; `None` where it can't be opened.
    pub origins: Option<Vec<String>>,
}

/// The secrets of a home.
#[derive(Clone, Debug)]
pub struct SecretFiles {
    folder: PathBuf,
    key: PathBuf,
}

impl SecretFiles {
    /// The secrets of a home.
    pub fn of(home: &Home) -> Self {
        let (folder, key) = (home.folder().join("secrets"), home.keys().join("secrets.key"));
        Self { folder, key }
    }

    /// The secrets in a folder, under the key at that path.
    pub fn at(folder: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        Self { folder: folder.as_ref().to_path_buf(), key: key.as_ref().to_path_buf() }
    }

    /// Sets a secret, in the place of one of that name. Servers are written as
    /// `https://api.example.com`, with their port where it is not the usual one.
    ///
    /// # Errors
    /// [`Error::BadName`] where name, value or a server is not of its form; [`Error::File`].
    pub fn set(&self, name: &str, value: &str, origins: &[&str]) -> Result<(), Error> {
        let bad = |what, got: &str| Error::BadName { what, got: got.to_owned() };
        if !is_secret_name(name) {
            return Err(bad("the secret's name", name));
        }
        let read = |text: &&str| Origin::parse(text).ok_or_else(|| bad("the server", text));
        let origins: Vec<Origin> = origins.iter().map(read).collect::<Result<_, _>>()?;
        if origins.len() > ORIGINS_MAX {
            return Err(bad("the servers", "too many"));
        }
        let names = origins.iter().map(|origin| Box::from(origin.as_str())).collect();
        let value = Zeroizing::new(value.to_owned());
        let secret = Secret::new(value.clone(), origins);
        // What it is must not stand in an error.
        secret.ok_or_else(|| bad("the secret's value", "(not shown)"))?;
        disk::make_folder(&self.folder).map_err(at(&self.folder))?;
        for folder in self.key.parent().into_iter().chain([&*self.folder]) {
            disk::sweep(folder).map_err(at(folder))?;
        }
        // A rotation that has passed this name by would leave it under the old key.
        let _lock = lock(self.keys()?)?;
        let opened = Opened { value: Box::from(value.as_str()), origins: names };
        let plain = Zeroizing::new(encoded(&opened));
        let bytes = self.key_to_set()?.seal(&belongs(name), &plain)?;
        let path = self.folder.join(name);
        disk::replace(&path, &bytes).map_err(at(&path))
    }

    /// The secrets that there are, by name.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn list(&self) -> Result<Vec<SecretInfo>, Error> {
        let info = |name: String| {
            let texts = |secret: Secret| {
                secret.origins().iter().map(|origin| origin.as_str().to_owned()).collect()
            };
            let origins = self.find(&name).ok().map(texts);
            SecretInfo { name, origins }
        };
        Ok(self.names()?.into_iter().map(info).collect())
    }

    /// Removes a secret.
    ///
    /// # Errors
    /// [`Error::NoSuch`]; [`Error::File`].
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let none = || Error::NoSuch { what: "a secret", got: name.to_owned() };
        if !is_secret_name(name) {
            return Err(none());
        }
        let path = self.folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(none()),
            removed => removed.map_err(at(&path))?,
        }
        disk::sync_folder(&self.folder).map_err(at(&self.folder))
    }

    /// Writes the key anew in the form of a key file, where it lies in the one of before: 32 bytes.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::KeysBusy`].
    pub fn keep_form(&self) -> Result<(), Error> {
        if !fs::metadata(&self.key).is_ok_and(|found| found.len() == SEED_BYTES) {
            return Ok(());
        }
        let _lock = lock(self.keys()?)?;
        match SecretsKey::read(&self.key)? {
            Some((key, Form::Bare)) => key.replace(&self.key),
            Some((_, Form::Whole)) | None => Ok(()),
        }
    }

    /// Makes a new key, and seals every secret anew under it. Until all are, both keys open them:
    /// what breaks it off leaves none unreadable, and the next rotation goes on. Returns how many
    /// were sealed anew.
    ///
    /// # Errors
    /// [`Error::NoSuch`] where there is no key yet; [`Error::File`]; [`Error::KeysBusy`].
    pub fn rotate(&self) -> Result<usize, Error> {
        let _lock = lock(self.keys()?)?;
        let none = || Error::NoSuch { what: "a key of secrets", got: String::new() };
        let (current, _) = SecretsKey::read(&self.key)?.ok_or_else(none)?;
        let waits = self.next_path();
        let next = match self.next(&current) {
            Some(next) => next,
            None => {
                // What the current key does not open is none of ours, or was done with.
                remove(&waits)?;
                let next = SecretsKey::generate()?;
                let sealed = current.seal(NEXT, &*next.key)?;
                disk::write_new(&waits, &sealed).map_err(at(&waits))?;
                next
            }
        };
        let mut count = 0_usize;
        for name in self.names()? {
            let path = self.folder.join(&name);
            let bytes = read_small(&path).map_err(at(&path))?;
            let aad = belongs(&name);
            if next.unseal(&aad, &bytes).is_none() {
                let Some(plain) = current.unseal(&aad, &bytes) else { continue };
                disk::replace(&path, &next.seal(&aad, &plain)?).map_err(at(&path))?;
            }
            count = count.saturating_add(1);
        }
        next.replace(&self.key)?;
        remove(&waits).map(|()| count)
    }

    fn keys(&self) -> Result<&Path, Error> {
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "a key lies in a folder");
        self.key.parent().ok_or_else(|| at(&self.key)(none()))
    }

    fn next_path(&self) -> PathBuf {
        let mut path = self.key.clone().into_os_string();
        path.push(".next");
        PathBuf::from(path)
    }

    /// The key that a rotation has begun to seal by: it lies sealed under the current one, so that
    /// nobody else can have put it there.
    fn next(&self, current: &SecretsKey) -> Option<SecretsKey> {
        let sealed = read_small(&self.next_path()).ok()?;
        let key = current.unseal(NEXT, &sealed)?;
        Some(SecretsKey { key: Zeroizing::new(key.as_slice().try_into().ok()?) })
    }

    /// The names of all secrets.
    fn names(&self) -> Result<Vec<String>, Error> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(at(&self.folder))?,
        };
        let mut all = Vec::new();
        for entry in entries {
            let name = entry.map_err(at(&self.folder))?.file_name();
            all.extend(name.to_str().filter(|name| is_secret_name(name)).map(str::to_owned));
        }
        all.sort();
        Ok(all)
    }

    /// The key that secrets are set by: a rotation's new one, where one was broken off. It is made
    /// where there is none. Under the lock.
    fn key_to_set(&self) -> Result<SecretsKey, Error> {
        match SecretsKey::read(&self.key)? {
            Some((key, form)) => {
                if form == Form::Bare {
                    key.replace(&self.key)?;
                }
                Ok(self.next(&key).unwrap_or(key))
            }
            None => {
                let key = SecretsKey::generate()?;
                disk::write_new(&self.key, &key.to_bytes()?).map_err(at(&self.key))?;
                Ok(key)
            }
        }
    }

    fn open(&self, name: &str, bytes: &[u8]) -> Option<Secret> {
        let (key, _) = SecretsKey::read(&self.key).ok()??;
        let aad = belongs(name);
        let next = || self.next(&key)?.unseal(&aad, bytes);
        let plain = key.unseal(&aad, bytes).or_else(next)?;
        let Opened { value, origins } = decoded(&plain)?;
        let value = Zeroizing::new(String::from(value));
        let origins: Option<Vec<Origin>> = origins.iter().map(|text| Origin::parse(text)).collect();
        Secret::new(value, origins?)
    }
}

/// How the key lies in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As a key file.
    Whole,
    /// As 32 bytes, as it did before.
    Bare,
}

/// The key of a home's secrets. It is wiped when it is dropped.
struct SecretsKey {
    key: Zeroizing<[u8; 32]>,
}

impl SecretsKey {
    fn generate() -> Result<Self, Error> {
        let mut key = Zeroizing::new([0; 32]);
        SystemEntropy.fill(&mut *key)?;
        Ok(Self { key })
    }

    /// The key in a file; `None` where there is none.
    fn read(path: &Path) -> Result<Option<(Self, Form)>, Error> {
        let bytes = match read_small(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => Zeroizing::new(bytes.map_err(at(path))?),
        };
        if let Ok(key) = <[u8; 32]>::try_from(bytes.as_slice()) {
            return Ok(Some((Self { key: Zeroizing::new(key) }, Form::Bare)));
        }
        let read = Self::from_bytes(&bytes);
        let key = read.map_err(|why| Error::KeyFile { path: path.to_path_buf(), why })?;
        Ok(Some((key, Form::Whole)))
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, KeyFileError> {
        let mut fields = Fields::read(bytes)?;
        if fields.uint("version")? != 1 || fields.text("algorithm")? != ALGORITHM {
            return Err(KeyFileError::Unknown);
        }
        if fields.text("use")? != USE {
            return Err(KeyFileError::Use);
        }
        let public = fields.bytes("public")?;
        let key = Self { key: Zeroizing::new(fields.array("seed")?) };
        fields.end()?;
        let (salt, hash) = public.split_first_chunk().ok_or(KeyFileError::Form)?;
        let same = key.commitment(&Salt::from_bytes(*salt)).as_bytes() == hash;
        if same { Ok(key) } else { Err(KeyFileError::Public) }
    }

    /// The file's bytes: a map of five entries, as every key file is.
    fn to_bytes(&self) -> Result<Zeroizing<Vec<u8>>, Error> {
        let mut salt = [0; 32];
        SystemEntropy.fill(&mut salt)?;
        let hash = self.commitment(&Salt::from_bytes(salt));
        let public = [&salt[..], hash.as_bytes()].concat();
        let map = MapBuilder::new().uint("version", 1).text("algorithm", ALGORITHM);
        let map = map.text("use", USE).bytes("public", &public).bytes("seed", &self.key[..]);
        Ok(Zeroizing::new(map.finish().into_bytes()))
    }

    fn replace(&self, path: &Path) -> Result<(), Error> {
        disk::replace(path, &self.to_bytes()?).map_err(at(path))
    }

    /// What is public of it: a salted commitment, by which a file that was changed is known.
    fn commitment(&self, salt: &Salt) -> TextHash {
        let digits: String = self.key.iter().map(|byte| format!("{byte:02x}")).collect();
        let digits = Zeroizing::new(digits);
        text_hash(salt, 0, &digits)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.key).into())
    }

    fn seal(&self, aad: &[u8], plain: &[u8]) -> Result<Vec<u8>, Error> {
        let mut nonce = [0; 24];
        SystemEntropy.fill(&mut nonce)?;
        let sealed = self.cipher().encrypt(&nonce.into(), Payload { msg: plain, aad });
        let bad = || Error::BadName { what: "the secret's value", got: "(not shown)".to_owned() };
        let sealed = sealed.map_err(|_| bad())?;
        Ok(encoded(&SealedSecret { version: 1, nonce, sealed }))
    }

    fn unseal(&self, aad: &[u8], bytes: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let SealedSecret { version, nonce, sealed } = decoded(bytes)?;
        let nonce = (version == 1).then_some(nonce)?;
        let plain = self.cipher().decrypt(&nonce.into(), Payload { msg: &sealed, aad }).ok()?;
        Some(Zeroizing::new(plain))
    }
}

/// Removes a file, which need not be there.
fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| disk::sync_parent(path)).map_err(at(path)),
    }
}

impl Secrets for SecretFiles {
    fn find(&self, name: &str) -> Result<Secret, SecretError> {
        if !is_secret_name(name) {
            return Err(SecretError::NotFound);
        }
        for _ in 0..TRIES {
            let bytes =
                read_small(&self.folder.join(name)).map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound => SecretError::NotFound,
                    _ => SecretError::Unreadable,
                })?;
            if let Some(secret) = self.open(name, &bytes) {
                return Ok(secret);
            }
        }
        Err(SecretError::Unreadable)
    }
}

fn belongs(name: &str) -> Vec<u8> {
    [CONTEXT, name.as_bytes()].concat()
}

fn encoded<T: Field>(value: &T) -> Vec<u8> {
    let mut encoder = Encoder::with_capacity(8 << 10);
    value.put(&mut encoder);
    encoder.into_bytes()
}

fn decoded<T: Field>(bytes: &[u8]) -> Option<T> {
    let mut decoder = Decoder::new(bytes, Profile::CONTROL);
    let value = T::take(&mut decoder).ok()?;
    decoder.finish().ok()?;
    Some(value)
}
