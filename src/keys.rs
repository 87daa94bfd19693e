//! Who signs: the keys of the five roles.

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::DirBuilderExt,
    path::Path,
};

use ed25519_dalek::{Signer as _, SigningKey};
use syscap_audit::disk;
use syscap_kernel::{
    control::{Role, Roles},
    ports::Entropy,
    sign::{PublicKey, Signature},
};

use crate::error::{Error, at};

/// Why a signature can't be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignerError {
    /// There is no key for this role.
    #[error("there is no key for this role")]
    NoKey,
    /// A key is not one that can be used.
    #[error("the key can't be used")]
    BadKey,
}

/// Signs for roles. Keys may lie in files, in hardware or with another process.
pub trait Signer: Send + Sync {
    /// The public key of a role.
    ///
    /// # Errors
    /// [`SignerError`].
    fn public_key(&self, role: Role) -> Result<PublicKey, SignerError>;

    /// Signs `message`, which already begins with its context.
    ///
    /// # Errors
    /// [`SignerError`].
    fn sign(&self, role: Role, message: &[u8]) -> Result<Signature, SignerError>;
}

/// Keys in a folder, one file of 32 bytes a role, readable by their owner only.
///
/// By default the folder lies in the home. That protects against nobody who owns the folder;
/// [`crate::Options::signer`] puts the keys elsewhere.
pub struct FileKeys {
    keys: Vec<(Role, SigningKey)>,
}

impl FileKeys {
    /// Makes five keys in a folder that must not exist yet. When it returns, no power cut takes
    /// them away.
    ///
    /// # Errors
    /// [`Error::File`] or [`Error::Entropy`].
    pub fn create(folder: &Path, entropy: &dyn Entropy) -> Result<Self, Error> {
        fs::DirBuilder::new().mode(0o700).create(folder).map_err(at(folder))?;
        disk::sync_parent(folder).map_err(at(folder))?;
        let mut keys = Vec::new();
        for role in &Role::IN_USE {
            let mut seed = [0; 32];
            entropy.fill(&mut seed)?;
            write_new(&file(folder, *role), &seed)?;
            keys.push((*role, SigningKey::from_bytes(&seed)));
        }
        Ok(Self { keys })
    }

    /// Reads the keys that are there; a role whose file is missing can't sign.
    ///
    /// # Errors
    /// [`Error::File`], or [`Error::Signer`] where a file does not hold 32 bytes.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let mut keys = Vec::new();
        for role in &Role::IN_USE {
            let path = file(folder, *role);
            let mut bytes = Vec::new();
            match crate::home::regular(&path) {
                Ok(file) => {
                    // One byte more than a key has, to tell a longer file.
                    file.take(33).read_to_end(&mut bytes).map_err(at(&path))?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(at(&path)(error)),
            }
            let seed: [u8; 32] = bytes.try_into().map_err(|_| SignerError::BadKey)?;
            keys.push((*role, SigningKey::from_bytes(&seed)));
        }
        Ok(Self { keys })
    }

    fn key(&self, role: Role) -> Result<&SigningKey, SignerError> {
        let found = self.keys.iter().find(|(r, _)| *r == role);
        found.map(|(_, key)| key).ok_or(SignerError::NoKey)
    }
}

impl Signer for FileKeys {
    fn public_key(&self, role: Role) -> Result<PublicKey, SignerError> {
        PublicKey::new(self.key(role)?.verifying_key().to_bytes()).map_err(|_| SignerError::BadKey)
    }

    fn sign(&self, role: Role, message: &[u8]) -> Result<Signature, SignerError> {
        Ok(Signature::from_bytes(self.key(role)?.sign(message).to_bytes()))
    }
}

/// The public keys of all five roles.
pub(crate) fn roles(signer: &dyn Signer) -> Result<Roles, SignerError> {
    let key = |role| signer.public_key(role);
    Ok(Roles::new([
        key(Role::Issuer)?,
        key(Role::Policy)?,
        key(Role::Revoker)?,
        key(Role::Approver)?,
        key(Role::Operator)?,
    ]))
}

/// The public keys of those roles that a signer has a key for.
pub(crate) fn known_keys(signer: &dyn Signer) -> Result<Vec<(Role, PublicKey)>, SignerError> {
    let known = Role::IN_USE.iter().map(|role| match signer.public_key(*role) {
        Ok(key) => Ok(Some((*role, key))),
        Err(SignerError::NoKey) => Ok(None),
        Err(error) => Err(error),
    });
    known.filter_map(Result::transpose).collect()
}

fn file(folder: &Path, role: Role) -> std::path::PathBuf {
    folder.join(format!("{}.key", role.name()))
}

/// Writes a file that must not exist, durably, for its owner only.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    disk::write_new(path, bytes).map_err(at(path))
}
