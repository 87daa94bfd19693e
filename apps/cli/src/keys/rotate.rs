//! `syscap keys rotate`.

use std::path::{Path, PathBuf};

use clap::Args;
use syscap::format::{KeyChange, Possession, PublicKey, Role, RoleSet};
use syscap::keys::{KeyFile, KeyUse, Rotation, Seal, SecretKey, alone, replacing};
use syscap::{Error, Home, Inspection, SignerError, SystemEntropy};

use super::authority::{By, CutOff, unsealed};
use super::list::here;
use super::make;
use crate::exit::{Ended, Exit, Failure, tell};
use crate::output::{Object, Out};
use crate::{parse, runtime, terminal};

/// Which role's key.
#[derive(Args, Debug)]
#[command(after_long_help = "\
The new key is written beside the old one, put on record, and then takes the old one's place, which
is lost. Where this breaks off, the next `keys rotate` of the role goes on with the same key; until
then everything signs with the one of the two that is on record. With --recovery nothing is taken
up: what lies there may be a thief's.

By the operator's key the new key takes the place of the one that lies here, and the role's other
keys stay. With --recovery it takes the place of all: then it alone signs for the role.")]
pub(crate) struct Rotate {
    /// The home.
    home: PathBuf,
    /// The role.
    #[arg(long, value_name = "ROLE", value_parser = parse::role)]
    role: Role,
    #[command(flatten)]
    cut_off: CutOff,
    /// Do not seal the new key.
    #[arg(long)]
    no_passphrase: bool,
    /// For the issuer: seal the new key too, so that issuing tokens asks for the passphrase.
    #[arg(long, conflicts_with = "no_passphrase")]
    passphrase: bool,
    /// Take up nothing that lies there from an earlier rotation, which is lost: make a key anew.
    #[arg(long)]
    anew: bool,
    #[command(flatten)]
    by: By,
}

/// The failure to unseal what an earlier rotation left: it is not the key that people know.
fn of_next(path: &Path, failure: Failure) -> Failure {
    match failure {
        Failure::Runtime(error) if matches!(*error, Error::Signer(SignerError::Passphrase(_))) => {
            let advice = "this is not its passphrase, or it was changed; --anew makes another key"
                .to_owned();
            Failure::Usage { what: path.display().to_string(), advice }
        }
        failure => failure,
    }
}

/// True if nothing can have come on record: it was refused, or not even signed.
fn is_certain(failure: &Failure) -> bool {
    match failure {
        Failure::Refused(_) | Failure::Busy | Failure::Sealed(_) => true,
        Failure::Runtime(error) => matches!(**error, Error::Signer(_)),
        _ => false,
    }
}

impl Rotate {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let (home, role) = (Home::at(&self.home), self.role);
        if self.passphrase && role == Role::Revoker {
            let advice = "is not for the revoker: an emergency stop must always work".to_owned();
            return Err(Failure::Usage { what: "--passphrase".to_owned(), advice });
        }
        let log = runtime::look(&self.home)?;
        let cut_off = self.cut_off.seq(role, &log)?;
        // Whoever made this necessary may have put there what lies there.
        let is_anew = self.anew || self.by.recovery.is_some();
        let mut left = match Rotation::left(&home.keys(), role) {
            // Nothing of it is taken up.
            Err(Error::KeyFile { .. }) if is_anew => None,
            left => left?,
        };
        if let Some(next) = left.take_if(|left| on_record(&log, role, &left.public_key())) {
            Rotation::begin(&home.keys(), role, || Ok(next.clone()))?.finish()?;
            // It took the place of one key, and cut nothing off: more is asked for now.
            if self.by.recovery.is_none() && cut_off.is_none() {
                return said(out, &next.public_key(), role, None);
            }
        }
        let takes_up = left.filter(|_| !is_anew);
        let old = self.old(&home, &log)?;
        if let Some(left) = &takes_up {
            self.check_left(&home, left)?;
        }
        let authority = self.by.authority(&self.home, &log)?;
        let seal = match takes_up {
            Some(_) => None,
            None => Some(self.seal(&home)?),
        };
        let mut made: Option<SecretKey> = None;
        let make = || {
            // What was to be taken up has gone: another rotation ended meanwhile.
            let seal = seal.as_ref().ok_or_else(|| Error::KeysBusy(home.keys()))?;
            let (file, key) = KeyFile::generate(KeyUse::Role(role), seal, &SystemEntropy)?;
            made = Some(key);
            Ok(file)
        };
        let rotation = match is_anew {
            true => Rotation::anew(&home.keys(), role, make),
            false => Rotation::begin(&home.keys(), role, make),
        }?;
        let is_made = made.is_some();
        let key = match made {
            Some(key) => key,
            // One that broke off before it was on record.
            None => {
                self.check_left(&home, rotation.next())?;
                let path = self.next_path(&home);
                if rotation.next().is_sealed() {
                    let role = role.name();
                    tell(&format!(
                        "{} lies there from an earlier rotation, and is sealed: its passphrase is \
                         asked for, not that of the {role} key; --anew makes another",
                        path.display()
                    ));
                }
                unsealed(rotation.next()).map_err(|failure| of_next(&path, failure))?
            }
        };
        let proof = key.possession(&log.kernel().home(), role);
        let change = |set: &RoleSet| self.change(set, &old, &proof, cut_off);
        let seq = match authority.change(&self.home, role, change) {
            Ok(seq) => seq,
            // It is on no record, nor will be. Of any other failure that is not known, and what lies
            // there is taken up by the next rotation.
            Err(failure) if is_made && is_certain(&failure) => {
                rotation.abandon()?;
                return Err(failure);
            }
            Err(failure) => return Err(failure),
        };
        rotation.finish()?;
        said(out, &key.public_key(), role, Some(seq.get()))
    }

    /// The keys to remove: the one that lies here; with the recovery key all of them.
    fn old(&self, home: &Home, log: &Inspection) -> Result<Vec<PublicKey>, Failure> {
        let (role, recovers) = (self.role, self.by.recovery.is_some());
        let set = log.kernel().roles().set(role);
        let all: Vec<PublicKey> = set.into_iter().flat_map(RoleSet::keys).collect();
        if recovers {
            return Ok(all);
        }
        let own = here(home, KeyUse::Role(role))?.map(|file| file.public_key());
        match own {
            Some(own) if all.contains(&own) => Ok(vec![own]),
            own => {
                let path = KeyUse::Role(role).path(&home.keys()).display().to_string();
                let what = if own.is_some() { "is not on record" } else { "does not lie here" };
                let advice = format!(
                    "{what}, so it is not clear which key is to go: `keys add` and `keys remove` \
                     say it, or --recovery FILE puts one key in the place of all"
                );
                Err(Failure::Usage { what: path, advice })
            }
        }
    }

    fn change(
        &self,
        set: &RoleSet,
        old: &[PublicKey],
        proof: &Possession,
        cut_off: Option<syscap::format::Seq>,
    ) -> Result<KeyChange, Failure> {
        let change = match self.by.recovery {
            Some(_) => alone(set, proof.clone()),
            None => replacing(set, old, proof.clone()),
        };
        let change = change.ok_or_else(|| Failure::Usage {
            what: format!("the {}", self.role),
            advice: "has other keys by now; see `syscap keys list`".to_owned(),
        })?;
        Ok(KeyChange { cut_off, ..change })
    }

    /// A key that lies there and is not sealed takes the place of one that is only where somebody
    /// says so: whoever writes to the folder may have put it there, and no passphrase is asked.
    fn check_left(&self, home: &Home, left: &KeyFile) -> Result<(), Failure> {
        if left.is_sealed() || self.no_passphrase || !self.was_sealed(home)? {
            return Ok(());
        }
        let path = self.next_path(home);
        let advice = "is not sealed, and the key that it would replace is; remove it, or use it \
                      with --no-passphrase if you made it so"
            .to_owned();
        Err(Failure::Usage { what: path.display().to_string(), advice })
    }

    fn next_path(&self, home: &Home) -> PathBuf {
        KeyUse::Role(self.role).path(&home.keys()).with_extension("key.next")
    }

    /// For an unreadable file it is unknown, and the passphrase is asked for.
    fn was_sealed(&self, home: &Home) -> Result<bool, Failure> {
        match here(home, KeyUse::Role(self.role)) {
            Ok(file) => Ok(file.is_some_and(|file| file.is_sealed())),
            Err(_) if self.by.recovery.is_some() => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// How the new key is sealed. One that was is not made open without a word.
    fn seal(&self, home: &Home) -> Result<Seal, Failure> {
        let key_use = KeyUse::Role(self.role);
        let was_sealed = self.was_sealed(home)?;
        if !KeyUse::SEALED.contains(&key_use) && !was_sealed && !self.passphrase {
            return Ok(Seal::Open);
        }
        if (was_sealed || self.passphrase) && !self.no_passphrase && !terminal::is_there() {
            return Err(Failure::Sealed(key_use));
        }
        let (seal, told) = make::seal(&format!("the new {key_use} key"), self.no_passphrase)?;
        told.iter().for_each(|told| tell(told));
        Ok(seal)
    }
}

fn on_record(log: &Inspection, role: Role, key: &PublicKey) -> bool {
    log.kernel().roles().holds(role, key)
}

/// `seq` where this run put it on record, and not an earlier one that broke off.
fn said(out: &mut Out, key: &PublicKey, role: Role, seq: Option<u64>) -> Ended {
    let json = Object::new().text("change", "rotated").text("role", role.name()).shown("key", key);
    match seq {
        Some(seq) => {
            let text = format!("rotated by record {seq}: {role} {key}");
            out.both(&text, json.uint("record", seq))?;
        }
        None => {
            let text = format!("{role} {key} was on record already: its file is in place now");
            out.both(&text, json.json("record", "null"))?;
        }
    }
    Ok(Exit::Done)
}
