//! A file that holds one key.

use std::fmt;
use std::io::{self, Read as _};
use std::path::Path;

use ed25519_dalek::{Signer as _, SigningKey};
use syscap_audit::disk;
use syscap_format::{
    Algorithm, Canonical, HomeId, MapBuilder, POSSESSION_CONTEXT, Possession, PublicKey, Role,
    Signature, possession, preimage,
};
use syscap_kernel::Entropy;
use zeroize::Zeroizing;

use crate::error::{Error, at};
use crate::home::files::write_new;
use crate::keys::fields::Fields;
use crate::keys::kinds::{KeyFileError, KeyUse, SignerError};
use crate::keys::seal::{Passphrase, Seal, Sealed};

/// Longest key file, in bytes: a sealed one has about 300.
const BYTES_MAX: usize = 4_096;
/// The version of the form that is written here.
const VERSION: u64 = 1;

/// A key as it lies in a file, sealed or not. The public key can be had without the passphrase.
#[derive(Clone)]
pub struct KeyFile {
    key_use: KeyUse,
    public: PublicKey,
    secret: Secret,
}

#[derive(Clone)]
enum Secret {
    Open(Zeroizing<[u8; 32]>),
    Sealed(Sealed),
}

impl KeyFile {
    /// Makes a key.
    ///
    /// # Errors
    /// [`Error::Entropy`]; [`Error::Signer`] where there is not the memory to seal it.
    pub fn generate(
        key_use: KeyUse,
        seal: &Seal,
        entropy: &dyn Entropy,
    ) -> Result<(Self, SecretKey), Error> {
        let mut seed = Zeroizing::new([0; 32]);
        entropy.fill(&mut seed[..])?;
        let key = SecretKey::new(key_use, &seed)?;
        let public = key.public;
        let secret = match seal {
            Seal::Open => Secret::Open(seed),
            Seal::By(passphrase) => {
                Secret::Sealed(Sealed::seal(&seed, passphrase, &head(key_use, &public), entropy)?)
            }
        };
        Ok((Self { key_use, public, secret }, key))
    }

    /// Reads a file that says what it is for.
    ///
    /// # Errors
    /// [`Error::File`] or [`Error::KeyFile`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::from_bytes(&contents(path)?).map_err(bad(path))
    }

    /// Reads a file that must be for one use.
    ///
    /// # Errors
    /// [`Error::File`] or [`Error::KeyFile`].
    pub fn read_as(path: &Path, key_use: KeyUse) -> Result<Self, Error> {
        let file = Self::read(path)?;
        if file.key_use == key_use { Ok(file) } else { Err(bad(path)(KeyFileError::Use)) }
    }

    /// The same; `None` where there is no file.
    ///
    /// # Errors
    /// As [`KeyFile::read_as`].
    pub fn find(path: &Path, key_use: KeyUse) -> Result<Option<Self>, Error> {
        match Self::read_as(path, key_use) {
            Ok(file) => Ok(Some(file)),
            Err(Error::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a file's bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyFileError> {
        let mut fields = Fields::read(bytes)?;
        if fields.uint("version")? != VERSION {
            return Err(KeyFileError::Unknown);
        }
        if fields.text("algorithm")? != Algorithm::Ed25519.name() {
            return Err(KeyFileError::Unknown);
        }
        let key_use = KeyUse::named(fields.text("use")?).ok_or(KeyFileError::Form)?;
        let public = fields.array("public")?;
        let public = PublicKey::new(public).map_err(|_| KeyFileError::Public)?;
        let secret = match fields.maybe("sealed") {
            Some(sealed) => Secret::Sealed(Sealed::read(Fields::of(sealed)?)?),
            None => Secret::Open(Zeroizing::new(fields.array("seed")?)),
        };
        fields.end()?;
        if let Secret::Open(seed) = &secret {
            let key = SecretKey::new(key_use, seed).map_err(|_| KeyFileError::Public)?;
            if key.public != public {
                return Err(KeyFileError::Public);
            }
        }
        Ok(Self { key_use, public, secret })
    }

    /// The file's bytes.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let map = described(self.key_use, &self.public);
        let map = match &self.secret {
            Secret::Open(seed) => map.bytes("seed", &seed[..]),
            Secret::Sealed(sealed) => map.item("sealed", sealed.to_canonical().item()),
        };
        Zeroizing::new(map.finish().into_bytes())
    }

    /// Writes it to a file that must not exist, for its owner only; file and folder are durable.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn write_new(&self, path: &Path) -> Result<(), Error> {
        write_new(path, &self.to_bytes())
    }

    /// The key's use.
    pub const fn key_use(&self) -> KeyUse {
        self.key_use
    }

    /// Its public key.
    pub const fn public_key(&self) -> PublicKey {
        self.public
    }

    /// True if signing with it takes a passphrase.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        matches!(self.secret, Secret::Sealed(_))
    }

    /// The key, where it is not sealed.
    ///
    /// # Errors
    /// [`SignerError::Sealed`].
    pub fn open(&self) -> Result<SecretKey, SignerError> {
        match &self.secret {
            Secret::Open(seed) => SecretKey::new(self.key_use, seed),
            Secret::Sealed(_) => Err(SignerError::Sealed(self.key_use)),
        }
    }

    /// The key. A file that is not sealed takes any passphrase.
    ///
    /// # Errors
    /// [`SignerError::Passphrase`] where it is the wrong one, or the file was changed;
    /// [`SignerError::NoMemory`].
    pub fn unseal(&self, passphrase: &Passphrase) -> Result<SecretKey, SignerError> {
        let Secret::Sealed(sealed) = &self.secret else { return self.open() };
        let opened = sealed.open(passphrase, &head(self.key_use, &self.public))?;
        let seed = opened.ok_or(SignerError::Passphrase(self.key_use))?;
        let key = SecretKey::new(self.key_use, &seed)?;
        if key.public == self.public { Ok(key) } else { Err(SignerError::BadKey) }
    }
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sealed = if self.is_sealed() { "sealed" } else { "open" };
        write!(f, "KeyFile({}, {:?}, {sealed})", self.key_use, self.public)
    }
}

/// A key that signs. It is wiped when it is dropped.
pub struct SecretKey {
    key_use: KeyUse,
    public: PublicKey,
    key: SigningKey,
}

impl SecretKey {
    fn new(key_use: KeyUse, seed: &[u8; 32]) -> Result<Self, SignerError> {
        let key = SigningKey::from_bytes(seed);
        let public =
            PublicKey::new(key.verifying_key().to_bytes()).map_err(|_| SignerError::BadKey)?;
        Ok(Self { key_use, public, key })
    }

    /// The key's use.
    pub const fn key_use(&self) -> KeyUse {
        self.key_use
    }

    /// Its public key.
    pub const fn public_key(&self) -> PublicKey {
        self.public
    }

    /// Signs `message`, which already begins with its context.
    pub fn sign(&self, message: &[u8]) -> Signature {
        Signature::from_bytes(self.key.sign(message).to_bytes())
    }

    /// Its own word, for one home and one role, that somebody holds it.
    pub fn possession(&self, home: &HomeId, role: Role) -> Possession {
        let message = possession(home, role, &self.public);
        let signature = self.sign(&preimage(POSSESSION_CONTEXT, &message));
        Possession { key: self.public, signature }
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({}, {:?})", self.key_use, self.public)
    }
}

/// The fields of a file beside its secret.
fn described(key_use: KeyUse, public: &PublicKey) -> MapBuilder {
    MapBuilder::new()
        .uint("version", VERSION)
        .text("algorithm", Algorithm::Ed25519.name())
        .text("use", key_use.name())
        .bytes("public", public.as_bytes())
}

/// The data that a sealed seed is bound to: every other field of its file.
fn head(key_use: KeyUse, public: &PublicKey) -> Vec<u8> {
    let described: Canonical = described(key_use, public).finish();
    described.into_bytes()
}

fn bad(path: &Path) -> impl FnOnce(KeyFileError) -> Error {
    let path = path.to_path_buf();
    move |why| Error::KeyFile { path, why }
}

/// The contents of a file. One that is too long for a key file is none.
fn contents(path: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
    // Room for all of it at once: what grows leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(BYTES_MAX));
    let file = disk::open_regular(path).map_err(at(path))?;
    let most = u64::try_from(BYTES_MAX).unwrap_or(u64::MAX);
    file.take(most).read_to_end(&mut bytes).map_err(at(path))?;
    Ok(bytes)
}

/// Makes the name of a file or folder durable.
pub(crate) fn sync_folder_of(path: &Path) -> Result<(), Error> {
    disk::sync_parent(path).map_err(at(path))
}
