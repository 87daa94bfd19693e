//! `syscap keys add` and `syscap keys remove`.

use std::path::PathBuf;

use clap::Args;
use syscap::Inspection;
use syscap::format::{KeyChange, Possession, PublicKey, Role, RoleSet, Signature};
use syscap::keys::{KeyFile, KeyUse, adding, removing};

use super::authority::{By, CutOff, unsealed};
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Object, Out};
use crate::{parse, runtime};

/// Which key, for which role.
#[derive(Args, Debug)]
#[command(after_long_help = "\
A key proves that somebody holds it, for this home and this role: from its file here, or by what
`syscap keys prove` printed where it is.")]
pub(crate) struct Add {
    /// The home.
    home: PathBuf,
    /// The role.
    #[arg(long, value_name = "ROLE", value_parser = parse::role)]
    role: Role,
    #[command(flatten)]
    key: Key,
    /// The proof that somebody holds it.
    #[arg(long, value_name = "HEX", value_parser = parse::proof, requires = "public")]
    proof: Option<Signature>,
    #[command(flatten)]
    by: By,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct Key {
    /// The key, in a file that lies here.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The key, which is held elsewhere.
    #[arg(long, value_name = "HEX", value_parser = parse::key, requires = "proof")]
    public: Option<PublicKey>,
}

impl Add {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let (log, role) = (runtime::look(&self.home)?, self.role);
        let proof = self.possession(&log)?;
        let key = proof.key;
        let add = |set: &RoleSet| match adding(set, proof.clone()) {
            Some(change) => Ok(change),
            None if set.holds(&key) => refuse(&key, format!("the {role} has it already")),
            None => refuse(&key, format!("the {role} has as many keys as a role may have")),
        };
        let checked = log.kernel().roles().set(role).map(add).transpose()?;
        proved(&log, checked.as_ref(), &key, role)?;
        let seq = self.by.authority(&self.home, &log)?.change(&self.home, role, add)?;
        said(out, "added", &key, role, seq.get())
    }

    fn possession(&self, log: &Inspection) -> Result<Possession, Failure> {
        if let Some(path) = &self.key.key_file {
            let file = KeyFile::read_as(path, KeyUse::Role(self.role))?;
            return Ok(unsealed(&file)?.possession(&log.kernel().home(), self.role));
        }
        match (self.key.public, self.proof) {
            (Some(key), Some(signature)) => Ok(Possession { key, signature }),
            // The command line is read so that there are both.
            _ => Err(Failure::Usage {
                what: "--public".to_owned(),
                advice: "needs --proof".to_owned(),
            }),
        }
    }
}

/// The kernel would say no more than that a signature is wrong.
fn proved(
    log: &Inspection,
    change: Option<&KeyChange>,
    key: &PublicKey,
    role: Role,
) -> Result<(), Failure> {
    let (home, before) = (log.kernel().home(), log.kernel().roles().set(role));
    let fine = change.zip(before).is_some_and(|(change, set)| change.is_proved(&home, set));
    match fine {
        true => Ok(()),
        false => refuse(key, format!("the proof is not one for this home and the {role}")),
    }
}

/// Which key of which role.
#[derive(Args, Debug)]
pub(crate) struct Remove {
    /// The home.
    home: PathBuf,
    /// The role.
    #[arg(long, value_name = "ROLE", value_parser = parse::role)]
    role: Role,
    /// The key, as `syscap keys list` shows it.
    #[arg(long, value_name = "HEX", value_parser = parse::key)]
    key: PublicKey,
    #[command(flatten)]
    cut_off: CutOff,
    #[command(flatten)]
    by: By,
}

impl Remove {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let (log, role, key) = (runtime::look(&self.home)?, self.role, self.key);
        let cut_off = self.cut_off.seq(role, &log)?;
        let remove = |set: &RoleSet| match removing(set, &key) {
            Some(change) => Ok(KeyChange { cut_off, ..change }),
            None if !set.holds(&key) => refuse(&key, format!("is no key of the {role}")),
            None => refuse(
                &key,
                format!(
                    "the {role} would have fewer keys than must sign; add another first, or \
                     rotate it"
                ),
            ),
        };
        log.kernel().roles().set(role).map(remove).transpose()?;
        let authority = self.by.authority(&self.home, &log)?;
        let seq = authority.change(&self.home, role, remove)?;
        said(out, "removed", &key, role, seq.get())
    }
}

fn refuse<T>(key: &PublicKey, advice: String) -> Result<T, Failure> {
    Err(Failure::Usage { what: key.to_string(), advice })
}

fn said(out: &mut Out, done: &str, key: &PublicKey, role: Role, seq: u64) -> Ended {
    let json = Object::new()
        .text("change", done)
        .text("role", role.name())
        .shown("key", key)
        .uint("record", seq);
    out.both(&format!("{done} by record {seq}: {role} {key}"), json)?;
    Ok(Exit::Done)
}
