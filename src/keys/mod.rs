//! Signing: the keys of the roles, the recovery key, and their files.
//!
//! Each role has keys on record; a home's folder has at most one of them for each, and the
//! recovery key until its owner takes it away. `docs/keys.md` says what that protects against.

mod change;
mod fields;
mod file;
mod folder;
pub(crate) mod kinds;
mod seal;
#[cfg(feature = "http")]
pub mod secrets;

use syscap_format::{PublicKey, Role, Roles, Signature};

pub use crate::keys::change::{adding, alone, removing, replacing};
pub use crate::keys::file::{KeyFile, SecretKey};
pub use crate::keys::folder::{FileKeys, Passphrases, Rotation};
pub use crate::keys::kinds::{KeyFileError, KeyUse, SignerError};
pub use crate::keys::seal::{Passphrase, Seal};

/// Signs for roles. Keys may lie in files, in hardware or with another process.
pub trait Signer: Send + Sync {
    /// The public key of a role.
    fn public_key(&self, role: Role) -> Result<PublicKey, SignerError>;

    /// Signs `message`, which already begins with its context.
    fn sign(&self, role: Role, message: &[u8]) -> Result<Signature, SignerError>;

    /// The key by which this home hands tokens on that name no other holder.
    ///
    /// # Errors
    /// [`SignerError::NoKey`] where there is none.
    fn holder_key(&self) -> Result<PublicKey, SignerError> {
        Err(SignerError::NoKey)
    }

    /// Signs `message`, which already begins with its context, with [that key](Self::holder_key).
    fn sign_as_holder(&self, _message: &[u8]) -> Result<Signature, SignerError> {
        Err(SignerError::NoKey)
    }

    /// Does beforehand what may take long, such as asking a person: while it does nothing else
    /// waits for the signature.
    ///
    /// # Errors
    /// [`SignerError`]: there will be no signature.
    fn prepare(&self, role: Role) -> Result<(), SignerError> {
        self.public_key(role).map(drop)
    }

    /// Says which keys are on record: whoever has several for a role signs with one of those from
    /// here on.
    fn renew(&self, _on_record: &Roles) {
        // Most have one, and nothing to choose.
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

/// The public keys of those roles that a signer has a key for which can be used.
pub(crate) fn known_keys(signer: &dyn Signer) -> Result<Vec<(Role, PublicKey)>, SignerError> {
    let known = Role::IN_USE.iter().map(|role| match signer.public_key(*role) {
        Ok(key) => Ok(Some((*role, key))),
        Err(SignerError::NoKey | SignerError::BadKey | SignerError::Unreadable(_)) => Ok(None),
        Err(error) => Err(error),
    });
    known.filter_map(Result::transpose).collect()
}
