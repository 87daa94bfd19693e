//! `syscap keys new` and `syscap keys prove`: keys that are made and held elsewhere.

use std::path::PathBuf;

use clap::Args;
use syscap::SystemEntropy;
use syscap::format::Role;
use syscap::keys::{KeyFile, KeyUse, Seal};

use super::authority::unsealed;
use crate::exit::{Ended, Exit, Failure, tell};
use crate::output::{Object, Out, hex};
use crate::{parse, runtime, terminal};

/// Which key to make.
#[derive(Args, Debug)]
pub(crate) struct New {
    /// The file, which must not be there.
    file: PathBuf,
    /// The role that it is to sign for.
    #[arg(long, value_name = "ROLE", value_parser = parse::role)]
    role: Role,
    /// Do not seal it.
    #[arg(long)]
    no_passphrase: bool,
}

/// How new keys are sealed: as a person says, and not at all where there is none; then that is
/// something to be told.
pub(crate) fn seal(what: &str, no_passphrase: bool) -> Result<(Seal, Option<String>), Failure> {
    match (no_passphrase, terminal::is_there()) {
        (true, _) => Ok((Seal::Open, None)),
        (false, true) => Ok((terminal::ask_new(what)?, None)),
        (false, false) => {
            let told = format!(
                "{what}: not sealed, because no terminal is here to ask for a passphrase; seal \
                 them by `syscap keys rotate`, or say --no-passphrase"
            );
            Ok((Seal::Open, Some(told)))
        }
    }
}

impl New {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let (seal, told) = seal(&format!("the {} key", self.role), self.no_passphrase)?;
        let (file, _) = KeyFile::generate(KeyUse::Role(self.role), &seal, &SystemEntropy)?;
        file.write_new(&self.file).map_err(|error| match error {
            syscap::Error::File { path, source } => Failure::file(&path)(source),
            error => error.into(),
        })?;
        let key = file.public_key();
        let json = Object::new()
            .shown("public", key)
            .shown("file", self.file.display())
            .flag("sealed", file.is_sealed());
        out.both(&format!("public {key}"), json)?;
        told.iter().for_each(|told| tell(told));
        Ok(Exit::Done)
    }
}

/// Which key to prove.
#[derive(Args, Debug)]
pub(crate) struct Prove {
    /// The home.
    home: PathBuf,
    /// The role.
    #[arg(long, value_name = "ROLE", value_parser = parse::role)]
    role: Role,
    /// The key.
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
}

impl Prove {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let home = runtime::look(&self.home)?.kernel().home();
        let file = KeyFile::read_as(&self.key_file, KeyUse::Role(self.role))?;
        let proof = unsealed(&file)?.possession(&home, self.role);
        let signature = hex(proof.signature.as_bytes());
        out.text(&format!("public {}", proof.key))?;
        out.text(&format!("proof  {signature}"))?;
        if out.form() == crate::output::Form::Json {
            let json = Object::new().shown("public", proof.key).text("proof", &signature);
            out.line(&json.finish())?;
        }
        Ok(Exit::Done)
    }
}
