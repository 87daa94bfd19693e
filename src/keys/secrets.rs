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
use syscap_format::{Decoder, Encoder, Profile};
use syscap_kernel::Entropy as _;
use syscap_syscalls::net::secret::{Origin, Secret, SecretError, Secrets, is_secret_name};
use zeroize::Zeroizing;

use crate::{Error, Home, SystemEntropy, error::at, home::files::read_small};

/// The domain separator of a sealed secret, before its name.
const CONTEXT: &[u8] = b"syscap/secret/v1\0";
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
        let cipher = self.cipher_or_new()?;
        let opened = Opened { value: Box::from(value.as_str()), origins: names };
        let plain = Zeroizing::new(encoded(&opened));
        let mut nonce = [0; 24];
        SystemEntropy.fill(&mut nonce)?;
        let belongs = belongs(name);
        let payload = Payload { msg: &plain, aad: &belongs };
        let sealed = cipher.encrypt(&nonce.into(), payload);
        let sealed = sealed.map_err(|_| bad("the secret's value", "(not shown)"))?;
        let bytes = encoded(&SealedSecret { version: 1, nonce, sealed });
        let path = self.folder.join(name);
        disk::replace(&path, &bytes).map_err(at(&path))
    }

    /// The secrets that there are, by name.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn list(&self) -> Result<Vec<SecretInfo>, Error> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(at(&self.folder))?,
        };
        let mut all = Vec::new();
        for entry in entries {
            let name = entry.map_err(at(&self.folder))?.file_name();
            let Some(name) = name.to_str().filter(|name| is_secret_name(name)) else { continue };
            let texts = |secret: Secret| {
                secret.origins().iter().map(|origin| origin.as_str().to_owned()).collect()
            };
            let origins = self.find(name).ok().map(texts);
            all.push(SecretInfo { name: name.to_owned(), origins });
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
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

    fn cipher_or_new(&self) -> Result<XChaCha20Poly1305, Error> {
        match read_small(&self.key) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut seed = Zeroizing::new([0; 32]);
                SystemEntropy.fill(&mut *seed)?;
                match disk::write_new(&self.key, &*seed) {
                    Ok(()) => Ok(XChaCha20Poly1305::new((&*seed).into())),
                    // Another process has made it meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        self.cipher_of(read_small(&self.key))
                    }
                    Err(error) => Err(at(&self.key)(error)),
                }
            }
            bytes => self.cipher_of(bytes),
        }
    }

    fn cipher_of(&self, bytes: io::Result<Vec<u8>>) -> Result<XChaCha20Poly1305, Error> {
        let bytes = Zeroizing::new(bytes.map_err(at(&self.key))?);
        let what = || io::Error::new(io::ErrorKind::InvalidData, "not a key of 32 bytes");
        cipher(&bytes).ok_or_else(|| at(&self.key)(what()))
    }

    fn open(&self, name: &str, bytes: &[u8]) -> Option<Secret> {
        let key = Zeroizing::new(read_small(&self.key).ok()?);
        let sealed: SealedSecret = decoded(bytes)?;
        let nonce = (sealed.version == 1).then_some(sealed.nonce)?;
        let belongs = belongs(name);
        let payload = Payload { msg: &sealed.sealed, aad: &belongs };
        let plain = cipher(&key)?.decrypt(&nonce.into(), payload).ok()?;
        let plain = Zeroizing::new(plain);
        let Opened { value, origins } = decoded(&plain)?;
        let value = Zeroizing::new(String::from(value));
        let origins: Option<Vec<Origin>> = origins.iter().map(|text| Origin::parse(text)).collect();
        Secret::new(value, origins?)
    }
}

impl Secrets for SecretFiles {
    fn find(&self, name: &str) -> Result<Secret, SecretError> {
        if !is_secret_name(name) {
            return Err(SecretError::NotFound);
        }
        let bytes = read_small(&self.folder.join(name)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => SecretError::NotFound,
            _ => SecretError::Unreadable,
        })?;
        self.open(name, &bytes).ok_or(SecretError::Unreadable)
    }
}

fn belongs(name: &str) -> Vec<u8> {
    [CONTEXT, name.as_bytes()].concat()
}

fn cipher(key: &[u8]) -> Option<XChaCha20Poly1305> {
    XChaCha20Poly1305::new_from_slice(key).ok()
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
