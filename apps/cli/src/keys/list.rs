//! `syscap keys list`.

use std::path::PathBuf;

use clap::Args;
use syscap::format::{Role, RoleSet, recovery_hash};
use syscap::keys::{KeyFile, KeyUse, Rotation};
use syscap::{Error, Home, Inspection};

use super::name::KeyNames;
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Object, Out, array, plain};
use crate::runtime;

/// Which home.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// The home.
    home: PathBuf,
}

/// The file that lies in a home for one use.
pub(crate) fn here(home: &Home, key_use: KeyUse) -> Result<Option<KeyFile>, Error> {
    KeyFile::find(&key_use.path(&home.keys()), key_use)
}

/// The keys found. A file that is no key of its use is reported, and is no key that lies here: an
/// operator who looks for a fault must see the other keys.
fn usable(
    found: Result<Option<KeyFile>, Error>,
    out: &mut Out,
) -> Result<Option<KeyFile>, Failure> {
    match found {
        Err(Error::KeyFile { path, why }) => {
            out.text(&format!("          {}: {why}", path.display()))?;
            Ok(None)
        }
        found => Ok(found?),
    }
}

/// The word for a sealed or an open file.
pub(crate) const fn seal(file: &KeyFile) -> &'static str {
    if file.is_sealed() { "sealed" } else { "not sealed" }
}

impl List {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let (home, log) = (Home::at(&self.home), runtime::look(&self.home)?);
        let names = crate::signed::names(&self.home);
        for set in log.kernel().roles().sets() {
            role(&home, &log, &names, set, out)?;
        }
        let hash = log.kernel().recovery();
        let file = usable(here(&home, KeyUse::Recovery), out)?;
        let lies = file.as_ref().map_or("null", |_| "true");
        let json = Object::new().text("use", "recovery");
        let json = match &hash {
            Some(hash) => json.shown("hash", hash),
            None => json.json("hash", "null"),
        };
        let ours = file.as_ref().map(|file| Some(recovery_hash(&file.public_key())) == hash);
        let text = match (&hash, &file, ours) {
            (None, ..) => "recovery  no key on record".to_owned(),
            (Some(hash), None, _) => format!("recovery  hash {hash}"),
            (Some(hash), Some(_), Some(false)) => {
                format!("recovery  hash {hash}, and another key lies here")
            }
            (Some(hash), Some(file), _) => {
                format!("recovery  hash {hash}, the key lies here, {}", seal(file))
            }
        };
        let json = match &file {
            Some(file) => json.flag("here", ours == Some(true)).flag("sealed", file.is_sealed()),
            None => json.flag("here", false).json("sealed", lies),
        };
        out.both(&text, json)?;
        Ok(Exit::Done)
    }
}

fn role(
    home: &Home,
    log: &Inspection,
    names: &KeyNames,
    set: &RoleSet,
    out: &mut Out,
) -> Result<(), Failure> {
    let kernel = log.kernel();
    let (role, count) = (set.role, set.keys().count());
    out.text(&format!("{role:<9} {} of {count} must sign", set.threshold))?;
    let own = usable(here(home, KeyUse::Role(role)), out)?;
    let next = usable(Rotation::left(&home.keys(), role), out)?;
    let file_of = |key| {
        let files = own.iter().chain(&next);
        files.into_iter().find(|file| file.public_key() == key)
    };
    let mut keys = Vec::new();
    for key in set.keys() {
        let (file, counter) = (file_of(key), kernel.counter(&key));
        let lies = file.map_or(String::new(), |file| format!(", lies here, {}", seal(file)));
        let name = names.of(&key);
        let shown = name.map_or_else(String::new, |name| format!("  {}", plain(name)));
        out.text(&format!("          {key}{shown}  counter {counter}{lies}"))?;
        let object = Object::new().shown("key", key).uint("counter", counter);
        let object = name.into_iter().fold(object, |object, name| object.text("name", name));
        keys.push(match file {
            Some(file) => object.flag("here", true).flag("sealed", file.is_sealed()).finish(),
            None => object.flag("here", false).json("sealed", "null").finish(),
        });
    }
    let mut other = Vec::new();
    for (file, what) in [(&own, "not on record"), (&next, "next, and not on record")] {
        let Some(file) = file else { continue };
        let key = file.public_key();
        if !set.holds(&key) {
            out.text(&format!("          {key}  lies here, {}, {what}", seal(file)))?;
            other.push(crate::output::quote(&key.to_string()));
        }
    }
    if out.form() == crate::output::Form::Json {
        let json = Object::new()
            .text("use", Role::name(role))
            .uint("threshold", set.threshold)
            .json("keys", &array(keys))
            .json("not_on_record", &array(other));
        out.line(&json.finish())?;
    }
    Ok(())
}
