//! `syscap keys name`: a name for a key, for people who read the log.
//!
//! The names are a text of the home's own, `HOME/key-names`: no record holds them, and they prove nothing.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use syscap::audit::disk;
use syscap::format::PublicKey;
use syscap::plain::plain;

use crate::exit::{Ended, Exit, Failure};
use crate::output::{Object, Out};
use crate::runtime;

const FILE: &str = "key-names";
/// More names than any home has keys.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Longest name, in characters.
const NAME_MAX: usize = 64;
/// Fewest digits by which a key is named.
const DIGITS_MIN: usize = 8;

/// Which key, and its name.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  syscap keys name home 3b6a27bcceb6 alice

Keys are shown by their names in `keys list`, `log show` and `approvals show`. The names are a text of
this home: no record holds them, and they prove nothing. The key is named by 8 or more of its digits.")]
pub(crate) struct Name {
    /// The home.
    home: PathBuf,
    /// The key, by its first digits: one on record here, or a whole key of before.
    key: String,
    /// The name. Without it, or empty: the key has none any more.
    #[arg(default_value = "")]
    name: String,
}

impl Name {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let mut names = KeyNames::read(&self.home).map_err(|error| self.bad(&error.to_string()))?;
        let key = self.key()?;
        let name = self.name.trim();
        let is_fit = name.chars().count() <= NAME_MAX && plain(name) == name;
        if !is_fit || name.contains('\n') {
            let advice = format!("a name is one line of visible characters, at most {NAME_MAX}");
            return Err(Failure::Usage { what: plain(name).into_owned(), advice });
        }
        let taken = names.0.iter().find(|(other, taken)| **other != key && *taken == name);
        if let Some((other, _)) = taken {
            let advice = format!("is the name of key {other} already");
            return Err(Failure::Usage { what: name.to_owned(), advice });
        }
        match name {
            "" => drop(names.0.remove(&key)),
            name => drop(names.0.insert(key, name.to_owned())),
        }
        names.write(&self.home).map_err(|error| self.bad(&error.to_string()))?;
        let text = match name {
            "" => format!("{key} has no name"),
            name => format!("{key} is {name}"),
        };
        out.both(&text, Object::new().shown("key", key).text("name", name))?;
        Ok(Exit::Done)
    }

    /// The key that is meant.
    fn key(&self) -> Result<PublicKey, Failure> {
        let log = runtime::look(&self.home)?;
        let all = log.kernel().roles().sets().flat_map(|set| set.keys().collect::<Vec<_>>());
        let digits = self.key.to_ascii_lowercase();
        let mut found: Vec<PublicKey> =
            all.filter(|key| key.to_string().starts_with(&digits)).collect();
        found.sort_unstable();
        found.dedup();
        match (found.as_slice(), crate::parse::key(&digits)) {
            ([key], _) if digits.len() >= DIGITS_MIN => Ok(*key),
            (_, Ok(key)) => Ok(key),
            _ => Err(self.bad("is no key on record, by 8 or more of its digits: syscap keys list")),
        }
    }

    fn bad(&self, advice: &str) -> Failure {
        Failure::Usage { what: plain(&self.key).into_owned(), advice: advice.to_owned() }
    }
}

/// The names of a home's keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyNames(BTreeMap<PublicKey, String>);

impl KeyNames {
    /// Reads them; a home where no key has a name has no such file.
    pub(crate) fn read(home: &Path) -> io::Result<Self> {
        let file = match disk::open_regular(&home.join(FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            file => file?,
        };
        let mut text = String::new();
        file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
        let pair = |line: &str| {
            let (key, name) = line.split_once(' ')?;
            Some((crate::parse::key(key).ok()?, name.to_owned()))
        };
        Ok(Self(text.lines().filter_map(pair).collect()))
    }

    fn write(&self, home: &Path) -> io::Result<()> {
        let text: String = self.0.iter().map(|(key, name)| format!("{key} {name}\n")).collect();
        disk::replace(&home.join(FILE), text.as_bytes())
    }

    /// The name of a key.
    pub(crate) fn of(&self, key: &PublicKey) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
}
