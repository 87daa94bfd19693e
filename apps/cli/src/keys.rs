//! `syscap keys`: which keys sign for a home, and how others come in their place.

mod authority;
mod change;
pub(crate) mod list;
pub(crate) mod make;
pub(crate) mod name;
mod rotate;

pub(crate) use authority::unsealed;

use clap::Subcommand;

use crate::{exit::Ended, output::Out};

/// A command on keys.
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Roles: issuer (tokens), policy, revoker (revocations and freezes), approver, operator (keys, tools,
settings). Each has one or more keys on record; the home's folder has a file for one of them.

The operator's key signs changes of keys. With --recovery FILE the recovery key does, whose hash the
log begins with: whoever steals the operator's key can't keep its owner out. `docs/keys.md` says
what to do then.")]
pub(crate) enum Keys {
    /// List the keys of each role, and which lie here.
    List(list::List),
    /// Name a key, for people who read the log.
    Name(name::Name),
    /// Make a key file that belongs to no home yet.
    New(make::New),
    /// Prove that you hold a key, for somebody who adds it elsewhere.
    Prove(make::Prove),
    /// Give a role one more key.
    Add(change::Add),
    /// Take a key from a role.
    Remove(change::Remove),
    /// Make a new key, in the place of the one that lies here.
    Rotate(rotate::Rotate),
}

impl Keys {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        match self {
            Self::List(list) => list.run(out),
            Self::Name(name) => name.run(out),
            Self::New(new) => new.run(out),
            Self::Prove(prove) => prove.run(out),
            Self::Add(add) => add.run(out),
            Self::Remove(remove) => remove.run(out),
            Self::Rotate(rotate) => rotate.run(out),
        }
    }
}
