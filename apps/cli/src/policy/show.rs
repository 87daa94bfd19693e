//! `syscap policy hash` and `policy show`.

use std::path::PathBuf;

use clap::Args;
use syscap::format::{Item, Profile, json};

use super::target::{Loaded, Which};
use crate::exit::{Ended, Exit};
use crate::output::{Form, Object, Out};

/// Whose hash.
#[derive(Args, Debug)]
pub(crate) struct Hash {
    /// A file, a home or preset:NAME.
    target: PathBuf,
}

impl Hash {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let hash = Loaded::of(&self.target)?.hash;
        out.both(&hash.to_string(), Object::new().shown("hash", hash))?;
        Ok(Exit::Done)
    }
}

/// Whose document.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// A file, a home or preset:NAME.
    target: PathBuf,
    /// The policy that a home asks beside the one in force.
    #[arg(long)]
    shadow: bool,
}

impl Show {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let which = if self.shadow { Which::Shadow } else { Which::InForce };
        let loaded = Loaded::which(&self.target, which)?;
        let engine = &loaded.object.engine;
        if out.form() == Form::Json {
            let document = Item::check(&loaded.object.document, Profile::CONTROL);
            let document = document.map_or_else(|_| "null".to_owned(), json::from_data);
            let json = Object::new()
                .shown("hash", loaded.hash)
                .text("engine", &engine.name)
                .uint("version", engine.version)
                .json("document", &document);
            out.line(&json.finish())?;
            return Ok(Exit::Done);
        }
        match loaded.document() {
            Some(policy) => policy.to_json().lines().try_for_each(|line| out.line(line))?,
            None if loaded.is_known() => out.line(&format!(
                "engine {} {}: no document; whatever the token permits is allowed",
                engine.name, engine.version
            ))?,
            // It says what it is, and why there is nothing to show.
            None => drop(loaded.policy()?),
        }
        Ok(Exit::Done)
    }
}
