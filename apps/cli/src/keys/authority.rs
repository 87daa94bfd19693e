//! By whose key a change of keys is signed.

use std::path::{Path, PathBuf};

use clap::Args;
use syscap::format::{KeyChange, Role, RoleSet, Seq, recovery_hash};
use syscap::keys::{KeyFile, KeyUse, SecretKey};
use syscap::{Beside, Error, FileKeys, Home, Inspection, Signer as _, SignerError};

use crate::exit::Failure;
use crate::terminal::{self, Terminal};
use crate::{runtime, signing};

/// The signer of a change of keys.
#[derive(Args, Debug)]
pub(super) struct By {
    /// Sign by the recovery key in this file, and not by the operator's.
    #[arg(long, value_name = "FILE")]
    pub(super) recovery: Option<PathBuf>,
}

/// A key that may sign changes of keys.
pub(super) enum Authority {
    Operator(Box<FileKeys>),
    Recovery(Box<SecretKey>),
}

impl By {
    /// Finds the key, and unseals it: before anything is opened that others wait for.
    pub(super) fn authority(&self, home: &Path, log: &Inspection) -> Result<Authority, Failure> {
        let roles = log.kernel().roles();
        if let Some(path) = &self.recovery {
            let file = KeyFile::read_as(path, KeyUse::Recovery)?;
            if log.kernel().recovery() != Some(recovery_hash(&file.public_key())) {
                let advice = "is not the recovery key of this home".to_owned();
                return Err(Failure::Usage { what: path.display().to_string(), advice });
            }
            return Ok(Authority::Recovery(Box::new(unsealed(&file)?)));
        }
        let keys = FileKeys::open(&Home::at(home).keys())?.asking(Terminal);
        keys.renew(roles);
        let usage = |advice: &str| Failure::Usage {
            what: KeyUse::Role(Role::Operator).path(&Home::at(home).keys()).display().to_string(),
            advice: advice.to_owned(),
        };
        match keys.public_key(Role::Operator) {
            Ok(key) if roles.holds(Role::Operator, &key) => {}
            Ok(_) => {
                return Err(usage(
                    "is not on record; use another one that is, or the recovery key: --recovery",
                ));
            }
            Err(SignerError::BadKey) => {
                return Err(usage("is no key file of this role; use the recovery key: --recovery"));
            }
            Err(SignerError::NoKey) => {
                return Err(usage("does not lie here; use the recovery key: --recovery"));
            }
            Err(error) => return Err(Error::from(error).into()),
        }
        terminal::unsealed(|| keys.prepare(Role::Operator)).map_err(Error::from)?;
        Ok(Authority::Operator(Box::new(keys)))
    }
}

impl Authority {
    /// Has a change recorded that is made from the keys that a role has.
    pub(super) fn change(
        &self,
        home: &Path,
        role: Role,
        change: impl Fn(&RoleSet) -> Result<KeyChange, Failure>,
    ) -> Result<Seq, Failure> {
        let key = match self {
            Self::Operator(keys) => keys.public_key(Role::Operator).map_err(Error::from)?,
            Self::Recovery(key) => key.public_key(),
        };
        let sign = |message: &[u8]| match self {
            Self::Operator(keys) => keys.sign(Role::Operator, message),
            Self::Recovery(key) => Ok(key.sign(message)),
        };
        let body = |log: &Inspection| {
            let none = Error::Signer(SignerError::NoKey);
            change(log.kernel().roles().set(role).ok_or(none)?)
        };
        runtime::with(home, |access| {
            signing::submit(home, access, &key, sign, body, &Beside::Nothing, Failure::from)
        })
    }
}

/// A file's key; a person is asked where it is sealed.
pub(crate) fn unsealed(file: &KeyFile) -> Result<SecretKey, Failure> {
    use syscap::keys::Passphrases as _;
    let unseal = || match file.open() {
        Err(SignerError::Sealed(key_use)) => file.unseal(&Terminal.ask(key_use)?),
        opened => opened,
    };
    Ok(terminal::unsealed(unseal).map_err(Error::from)?)
}

/// The cut-off of tokens.
#[derive(Args, Debug)]
pub(super) struct CutOff {
    /// For the issuer: revoke the tokens that were registered after this record by a key that the
    /// role no longer has.
    #[arg(long, value_name = "RECORD")]
    pub(super) cut_off: Option<u64>,
}

impl CutOff {
    /// A record that there is: before anybody is asked, and anything made.
    pub(super) fn seq(&self, role: Role, log: &Inspection) -> Result<Option<Seq>, Failure> {
        let last = log.kernel().head().seq;
        match self.cut_off {
            Some(seq) if Seq::new(seq) > last => Err(Failure::Usage {
                what: "--cut-off".to_owned(),
                advice: format!("there is no record {seq}: the last is {last}"),
            }),
            Some(_) if role != Role::Issuer => Err(Failure::Usage {
                what: "--cut-off".to_owned(),
                advice: format!("only tokens are cut off: the {role} has none"),
            }),
            seq => Ok(seq.map(Seq::new)),
        }
    }
}
