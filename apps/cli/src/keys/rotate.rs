//! `syscap keys rotate`.

use std::path::PathBuf;

use clap::Args;
use syscap::{
    Home, Inspection, SystemEntropy,
    kernel::{
        control::{KeyChange, Possession, Role, RoleSet},
        sign::PublicKey,
    },
    keys::{KeyFile, KeyUse, Rotation, Seal, SecretKey, alone, replacing},
};

use super::{By, CutOff, list::here, make, unsealed};
use crate::{
    Ended,
    exit::{Exit, Failure, tell},
    output::{Object, Out},
    parse, runtime, terminal,
};

/// Which role's key.
#[derive(Args, Debug)]
#[command(after_long_help = "\
The new key is written beside the old one, put on record, and then takes the old one's place, which
is lost. Where this breaks off, the next `keys rotate` of the role goes on with the same key; until
then everything signs with the one of the two that is on record.

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
    #[command(flatten)]
    by: By,
}

impl Rotate {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let (home, role) = (Home::at(&self.home), self.role);
        let log = runtime::look(&self.home)?;
        let cut_off = self.cut_off.seq(role)?;
        let left = Rotation::left(&home.keys(), role)?;
        if let Some(left) = left.filter(|left| on_record(&log, role, &left.public_key())) {
            Rotation::begin(&home.keys(), role, || Ok(left.clone()))?.finish()?;
            return said(out, &left.public_key(), role, None);
        }
        let old = self.old(&home, &log)?;
        let authority = self.by.authority(&self.home, &log)?;
        let seal = self.seal(&home)?;
        let mut made: Option<SecretKey> = None;
        let rotation = Rotation::begin(&home.keys(), role, || {
            let (file, key) = KeyFile::generate(KeyUse::Role(role), &seal, &SystemEntropy)?;
            made = Some(key);
            Ok(file)
        })?;
        let key = match made {
            Some(key) => key,
            // One that broke off before it was on record.
            None => unsealed(rotation.next())?,
        };
        let proof = key.possession(&log.kernel().home(), role);
        let change = |set: &RoleSet| self.change(set, &old, &proof, cut_off);
        let seq = authority.change(&self.home, role, change)?;
        rotation.finish()?;
        said(out, &key.public_key(), role, Some(seq.get()))
    }

    /// What goes: the key that lies here; with the recovery key all that there are.
    fn old(&self, home: &Home, log: &Inspection) -> Result<Vec<PublicKey>, Failure> {
        let (role, recovers) = (self.role, self.by.recovery.is_some());
        let set = log.kernel().roles().set(role);
        let all: Vec<PublicKey> = set.into_iter().flat_map(RoleSet::keys).collect();
        let own = here(home, KeyUse::Role(role))?.map(|file| file.public_key());
        match own {
            _ if recovers => Ok(all),
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
        cut_off: Option<syscap::kernel::id::Seq>,
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

    /// How the new key is sealed. One that was is not made open without a word.
    fn seal(&self, home: &Home) -> Result<Seal, Failure> {
        let key_use = KeyUse::Role(self.role);
        if !KeyUse::SEALED.contains(&key_use) || Rotation::left(&home.keys(), self.role)?.is_some()
        {
            return Ok(Seal::Open);
        }
        let was_sealed = here(home, key_use)?.is_some_and(|file| file.is_sealed());
        if was_sealed && !self.no_passphrase && !terminal::is_there() {
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
