//! `syscap artifacts`: what calls brought, in short and whole.

mod context;
mod found;
mod json;
mod list;
mod show;

use clap::Subcommand;

pub(crate) use self::json::short;
use crate::{exit::Ended, output::Out};

/// A command on results.
#[derive(Debug, Subcommand)]
pub(crate) enum Artifacts {
    /// The newest results, one row each. Works beside the process that holds the home.
    List(list::List),
    /// One result whole, part by part, a page at a time.
    Show(show::Show),
    /// The latest results of an agent as text for a model, bounded.
    Context(context::Context),
}

impl Artifacts {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        match self {
            Self::List(list) => list.run(out),
            Self::Show(show) => show.run(out),
            Self::Context(context) => context.run(out),
        }
    }
}
