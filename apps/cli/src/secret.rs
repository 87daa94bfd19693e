//! `syscap secret`: what tools send to servers, and nobody is shown.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use syscap::{Error, Home, secrets::SecretFiles, syscalls::net::secret::SECRET_BYTES_MAX};
use zeroize::Zeroizing;

use crate::exit::{Ended, Exit, Failure};
use crate::output::{Object, Out, array, quote};
use crate::terminal;

/// A command on secrets.
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
A secret is a text that http_request, tools made of it and net.egress send to the servers that it is
set for, where their settings name it. It lies sealed in the home, outside log and policy, and is
taken out of what comes back. `syscap http` names it in a tool's settings: docs/http.md.")]
pub(crate) enum Secret {
    /// Set a secret: its value is asked for at the terminal, or read from standard input.
    Set(Set),
    /// List the secrets by name, with the servers that each is sent to.
    List(List),
    /// Make a new key for the home's secrets, and seal all of them anew under it.
    Rotate(Rotate),
    /// Remove secrets. A tool that needs one is refused from then on.
    Rm(Rm),
}

impl Secret {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        match self {
            Self::Set(set) => set.run(out),
            Self::List(list) => list.run(out),
            Self::Rotate(rotate) => rotate.run(out),
            Self::Rm(rm) => rm.run(out),
        }
    }
}

/// Which secret, and for whom.
#[derive(Args, Debug)]
pub(crate) struct Set {
    /// The home.
    home: PathBuf,
    /// Its name: small letters, digits, `.`, `_`, `-`.
    name: String,
    /// A server that it is sent to, as https://api.example.com; may be given again.
    #[arg(long, value_name = "URL", required = true)]
    origin: Vec<String>,
}

impl Set {
    fn run(self, out: &mut Out) -> Ended {
        let secrets = of(&self.home)?;
        let value = value(&self.name)?;
        let origins: Vec<&str> = self.origin.iter().map(String::as_str).collect();
        secrets.set(&self.name, &value, &origins).map_err(wrong)?;
        let json = Object::new().text("secret", &self.name);
        out.both(&format!("{} is set for {}", self.name, self.origin.join(", ")), json)?;
        Ok(Exit::Done)
    }
}

/// Which home.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// The home.
    home: PathBuf,
}

impl List {
    fn run(self, out: &mut Out) -> Ended {
        for info in of(&self.home)?.list().map_err(wrong)? {
            let object = Object::new().text("secret", &info.name);
            match info.origins {
                Some(origins) => {
                    let line = format!("{:<24}  {}", info.name, origins.join(", "));
                    out.both(
                        &line,
                        object.json("origins", &array(origins.iter().map(|one| quote(one)))),
                    )?;
                }
                None => {
                    let line = format!("{:<24}  (can't be opened; set it anew)", info.name);
                    out.both(&line, object.json("origins", "null"))?;
                }
            }
        }
        Ok(Exit::Done)
    }
}

/// Which home.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Calls go on meanwhile. A copy of the home from before has the old key and secrets sealed by it; what a
thief of the key has read is not taken back: change the secrets at their servers.")]
pub(crate) struct Rotate {
    /// The home.
    home: PathBuf,
}

impl Rotate {
    fn run(self, out: &mut Out) -> Ended {
        let count = of(&self.home)?.rotate().map_err(wrong)?;
        let json = Object::new().uint("sealed", u64::try_from(count).unwrap_or(u64::MAX));
        out.both(&format!("a new key; {count} secrets are sealed by it"), json)?;
        Ok(Exit::Done)
    }
}

/// Which secrets.
#[derive(Args, Debug)]
pub(crate) struct Rm {
    /// The home.
    home: PathBuf,
    /// Their names.
    #[arg(required = true)]
    names: Vec<String>,
}

impl Rm {
    fn run(self, out: &mut Out) -> Ended {
        let secrets = of(&self.home)?;
        for name in &self.names {
            secrets.remove(name).map_err(wrong)?;
            out.both(&format!("{name} is removed"), Object::new().text("removed", name))?;
        }
        Ok(Exit::Done)
    }
}

/// The secrets of a home that is there.
fn of(home: &PathBuf) -> Result<SecretFiles, Failure> {
    crate::runtime::look(home)?;
    Ok(SecretFiles::of(&Home::at(home)))
}

pub(crate) fn wrong(error: Error) -> Failure {
    let usage = |what: String, advice: &str| Failure::Usage { what, advice: advice.to_owned() };
    match error {
        Error::NoSuch { what: "a key of secrets", .. } => {
            usage("the key".to_owned(), "is not there: no secret was ever set here")
        }
        Error::NoSuch { got, .. } => {
            usage(got, "is no secret here; `syscap secret list` shows those there are")
        }
        Error::BadName { what: "the secret's name", got } => {
            usage(got, "is no name: small letters, digits, `.`, `_`, `-`, at most 64")
        }
        Error::BadName { what: "the secret's value", .. } => usage(
            "the value".to_owned(),
            "must be one line of visible ASCII without blanks, with 8 letters and digits at least",
        ),
        Error::BadName { got, .. } => {
            usage(got, "is no server: https://HOST or https://HOST:PORT, without a path")
        }
        error => error.into(),
    }
}

/// Typed at the terminal, or the first line of standard input.
pub(crate) fn value(name: &str) -> Result<Zeroizing<String>, Failure> {
    let not_text =
        || Failure::Usage { what: "the value".to_owned(), advice: "is no text".to_owned() };
    let bytes = if io::stdin().is_terminal() {
        terminal::ask_secret(&format!("Value of {name}: ")).map_err(Failure::Stream)?
    } else {
        let most = u64::try_from(SECRET_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(2);
        let mut bytes = Vec::with_capacity(SECRET_BYTES_MAX.saturating_add(2));
        io::stdin().lock().take(most).read_to_end(&mut bytes).map_err(Failure::Stream)?;
        bytes
    };
    let bytes = Zeroizing::new(bytes);
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let text = std::str::from_utf8(line).map_err(|_| not_text())?;
    Ok(Zeroizing::new(text.to_owned()))
}
