//! The uses of keys, and the faults of key files.

use std::fmt;
use std::path::{Path, PathBuf};

use syscap_format::Role;

/// The use of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// A role signs with it.
    Role(Role),
    /// It gives roles other keys, where the operator's was lost or stolen.
    Recovery,
    /// It hands tokens on: what it signs gives no more than they do.
    Holder,
}

impl KeyUse {
    /// The uses that a passphrase seals, if there is one. Issuer and revoker sign without a person:
    /// machines issue tokens, unless somebody has that key sealed too, and an emergency stop must
    /// always work.
    pub const SEALED: [Self; 4] = [
        Self::Role(Role::Policy),
        Self::Role(Role::Approver),
        Self::Role(Role::Operator),
        Self::Recovery,
    ];

    /// Its name, which is also that of its file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Role(role) => role.name(),
            Self::Recovery => "recovery",
            Self::Holder => "holder",
        }
    }

    /// The use of that name.
    pub fn named(name: &str) -> Option<Self> {
        let uses = Role::IN_USE.into_iter().map(Self::Role).chain([Self::Recovery, Self::Holder]);
        uses.into_iter().find(|one| one.name() == name)
    }

    /// The path of its file in a folder of keys: `NAME.key`.
    pub fn path(self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.key", self.name()))
    }
}

impl fmt::Display for KeyUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a key file can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// It is not of its form.
    #[error("it is no key file, or it was cut off")]
    Form,
    /// Its version, or how it was sealed, is not known here.
    #[error("its form is not known here: newer software wrote it")]
    Unknown,
    /// Its public key is not one, or not that of its seed.
    #[error("its public key is not that of its seed")]
    Public,
    /// To unseal it would take more than this program gives.
    #[error("to unseal it would take more memory or time than a key file may ask for")]
    Costly,
    /// It is for another use than the one that its name says.
    #[error("it is the key of another role")]
    Use,
}

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
    /// The file of a key can't be read: it is another user's, say.
    #[error("the file of the {0} key can't be read")]
    Unreadable(Role),
    /// A person must unseal the key first, and there is none to be asked here.
    #[error("the {0} key is sealed, and there is nobody here to be asked for its passphrase")]
    Sealed(KeyUse),
    /// The passphrase is another; or the file was changed, which can't be told from that.
    #[error("this is not the passphrase of the {0} key, or its file was changed")]
    Passphrase(KeyUse),
    /// The role has other keys by now.
    #[error("the {0} key that lies here is not one on record")]
    NotOnRecord(Role),
    /// The key is sealed by a passphrase, and this program was built without the feature `seal`.
    #[error("this program was built without the feature `seal`: it can't seal or unseal a key")]
    NoSeal,
    /// There is not the memory to unseal a key.
    #[error("there is not enough memory to unseal a key")]
    NoMemory,
}
