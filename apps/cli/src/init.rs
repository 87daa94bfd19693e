//! `syscap init`: makes a home.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use syscap::audit::disk;
use syscap::kernel::StoreError;
use syscap::keys::{KeyFile, KeyUse, Seal};
use syscap::policy::{Policy, Preset};
use syscap::syscalls::beneath::{self, Openers};
use syscap::{Home, Options, Runtime, SystemEntropy};

use crate::exit::{Ended, Exit, Failure, tell};
use crate::keys::make;
use crate::learn::warn_of_policy;
use crate::output::{Object, Out, quote, word_of};
use crate::parse;

/// Make a home: the folder that holds the log, the keys, the policy and the agents' files.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  syscap init home --preset coder

At a terminal, init asks for a passphrase. It seals the keys of policy, approver, operator and
recovery; a command that changes policy, tools or keys then asks for it. The revoker's key is never
sealed, so that an emergency stop always works. The issuer's is not sealed, so that programs can
issue tokens; `syscap keys rotate --role issuer --passphrase` seals it.")]
pub(crate) struct Init {
    /// The folder to make. It must be empty or missing.
    home: PathBuf,
    /// The policy to begin with: standard, read-only, coder, researcher, mailer or recording.
    #[arg(long, value_name = "NAME", default_value = "standard", value_parser = parse::preset)]
    preset: Preset,
    /// Keep the agents' files below this folder, which must exist.
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    base: Option<PathBuf>,
    /// Where that folder is another home's base, keep this home's agents in folders of their own
    /// there.
    #[arg(long, requires = "base", conflicts_with = "take_base", help_heading = "Files")]
    shared_base: bool,
    /// Take the base of a home that is gone, with what its agents left there.
    #[arg(long, requires = "base", help_heading = "Files")]
    take_base: bool,
    /// The file backend that the home requires: openat2, cap_std or strongest. A system without it
    /// can't open the home.
    #[arg(long, value_name = "NAME", default_value = "strongest", value_parser = parse::openers)]
    #[arg(help_heading = "Files")]
    opener: Openers,
    /// Ask for no passphrase and seal no key. For scripts.
    #[arg(long, help_heading = "Keys")]
    no_passphrase: bool,
    /// Write the trust file here, too. Keep it where nobody who can change the home can reach it.
    #[arg(long, value_name = "FILE", help_heading = "Keys")]
    trust_out: Option<PathBuf>,
    /// Write the recovery key here, and not into the home.
    #[arg(long, value_name = "FILE", help_heading = "Keys")]
    recovery_out: Option<PathBuf>,
    /// Make no recovery key. A thief of the operator's key then keeps the home.
    #[arg(long, conflicts_with = "recovery_out", help_heading = "Keys")]
    no_recovery: bool,
}

/// The purpose of the passphrase.
const SEALED: &str = "the keys of policy, approver, operator and recovery";

impl Init {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        // A home that is half made helps nobody: what can be seen to fail is looked at first.
        expect_empty(&self.home)?;
        let policy = Policy::preset(self.preset).map_err(syscap::Error::Policy)?;
        let hash = policy.hash();
        warn_of_policy(&policy);
        let mut options = Options::new().policy(policy).openers(self.opener);
        if let Some(base) = &self.base {
            expect_apart(base, &self.home)?;
            options = options.base(base);
            options = match (self.shared_base, self.take_base) {
                (true, _) => options.shared_base(),
                (_, true) => options.take_base(),
                _ => options,
            };
        }
        self.trust_out.as_deref().map_or(Ok(()), expect_new)?;
        self.recovery_out.as_deref().map_or(Ok(()), expect_new)?;
        let (seal, told) = make::seal(SEALED, self.no_passphrase)?;
        let sealed = seal != Seal::Open;
        let runtime = self.create(options, seal)?;
        let (id, home) = (runtime.id(), runtime.home().clone());
        runtime.close()?;
        let base = home.base()?;
        let recovery = self.recovery(&home);
        let mut json = Object::new()
            .shown("home_id", id)
            .shown("home", home.folder().display())
            .shown("keys", home.keys().display())
            .flag("sealed", sealed)
            .json("recovery", &recovery.as_ref().map_or("null".to_owned(), |path| quote(path)))
            .shown("trust", home.trust().display())
            .shown("files", base.display())
            .text("preset", self.preset.name())
            .shown("policy", hash);
        if let Some(copy) = &self.trust_out {
            write_trust(&home.trust(), copy)?;
            json = json.shown("trust_out", copy.display());
        }
        let lines = self.lines(&home, &base, recovery.as_deref(), sealed || told.is_some());
        out.all(&lines, json)?;
        out.flush()?;
        told.iter().for_each(|told| tell(told));
        Ok(Exit::Done)
    }

    /// Says what was made, what its owner must do with it, and the next commands.
    fn lines(
        &self,
        home: &Home,
        base: &Path,
        recovery: Option<&str>,
        protected: bool,
    ) -> Vec<String> {
        let (folder, trust) = (home.folder().display(), home.trust());
        let mut lines = vec![
            format!(
                "created home {folder}: policy {}, agents' files in {}",
                self.preset,
                base.display()
            ),
            match (recovery, &self.recovery_out) {
                (None, _) => {
                    "no recovery key: whoever steals the operator's key keeps it".to_owned()
                }
                (Some(path), Some(_)) => format!("recovery key: {path}"),
                (Some(path), None) => {
                    format!("move {path} off this machine: it replaces keys that were stolen")
                }
            },
            match &self.trust_out {
                Some(copy) => format!("trust file: {}", copy.display()),
                None => format!(
                    "keep a copy of {} elsewhere: `syscap verify --trust` compares the log with it",
                    trust.display()
                ),
            },
        ];
        if !protected {
            let text = "the keys have no passphrase: every program of this user can use them";
            lines.push(text.to_owned());
        }
        let home = word_of(home.folder());
        lines.push(format!("next: syscap mcp {home} --agent me --review -- COMMAND"));
        lines.push(format!("  or: syscap hook {home} --agent me --client claude-code --setup"));
        lines
    }

    /// Makes the home. A recovery key that lies elsewhere is there first: a home whose owner has
    /// lost it can't be taken back.
    fn create(&self, options: Options, seal: Seal) -> Result<Runtime, Failure> {
        let options = options.seal(seal.clone());
        let options = match (&self.recovery_out, self.no_recovery) {
            (Some(path), _) => {
                let (file, _) = KeyFile::generate(KeyUse::Recovery, &seal, &SystemEntropy)?;
                file.write_new(path)?;
                options.recovery(file.public_key())
            }
            (None, true) => options.no_recovery(),
            (None, false) => options,
        };
        options.create(&self.home).map_err(Failure::home(&self.home))
    }

    /// The path of the recovery key.
    fn recovery(&self, home: &Home) -> Option<String> {
        let path = match &self.recovery_out {
            _ if self.no_recovery => return None,
            Some(path) => path.clone(),
            None => KeyUse::Recovery.path(&home.keys()),
        };
        Some(path.display().to_string())
    }
}

/// A folder that holds other things becomes no home: its permissions would be changed, and its
/// content would lie beside keys and log.
pub(crate) fn expect_empty(home: &Path) -> Result<(), Failure> {
    let mut entries = match fs::read_dir(home) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::file(home)(error)),
    };
    match entries.next() {
        None => Ok(()),
        Some(_) if home.join("home.db").exists() => {
            Err(Failure::home(home)(syscap::Error::Home(StoreError::Exists)))
        }
        Some(_) => {
            let what = home.display().to_string();
            let advice = "is not empty; name an empty or a new folder".to_owned();
            Err(Failure::Usage { what, advice })
        }
    }
}

/// A file that can be made: its folder is there, and it is not.
fn expect_new(file: &Path) -> Result<(), Failure> {
    if file.symlink_metadata().is_ok() {
        return Err(Failure::Exists(file.to_path_buf()));
    }
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let meta = fs::metadata(folder).map_err(Failure::file(folder))?;
    match meta.is_dir() {
        true => Ok(()),
        false => Err(Failure::file(folder)(io::ErrorKind::NotADirectory.into())),
    }
}

/// The agents' files must not lie around the home: they would reach keys and log.
fn expect_apart(base: &Path, home: &Path) -> Result<(), Failure> {
    let usage = |advice: String| Failure::Usage { what: base.display().to_string(), advice };
    let opened =
        beneath::open(base).map_err(|error| usage(format!("can't be the base: {error}")))?;
    let home = std::path::absolute(home).map_err(Failure::file(home))?;
    // What is not there yet will lie where the nearest folder that is there lies.
    let above = home.ancestors().find_map(|above| beneath::open(above).ok());
    match above.map(|above| opened.contains(&*above)) {
        Some(Ok(false)) => Ok(()),
        Some(Ok(true)) => Err(usage("would contain the home, its keys and its log".to_owned())),
        Some(Err(error)) => Err(usage(format!("can't be compared with the home: {error}"))),
        None => Err(usage("can't be compared with the home".to_owned())),
    }
}

/// Copies the trust file to a place that has no file yet.
fn write_trust(trust: &Path, copy: &Path) -> Result<(), Failure> {
    let bytes = fs::read(trust).map_err(Failure::file(trust))?;
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(copy);
    let mut file = file.map_err(Failure::file(copy))?;
    let written = file.write_all(&bytes).and_then(|()| file.sync_all());
    written.and_then(|()| disk::sync_parent(copy)).map_err(Failure::file(copy))
}
