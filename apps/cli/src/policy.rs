//! `syscap policy`: what may be done, and what is asked first.

mod allow;
mod check;
mod client_arguments;
mod diff;
mod explain;
pub(crate) mod hosts;
mod json;
mod recorded;
mod replay;
mod set;
mod show;
mod target;
mod test;
mod warnings;
mod who_can;

use clap::Subcommand;

pub(crate) use target::Loaded;

use crate::{exit::Ended, output::Out};

/// A command on policies.
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
A TARGET is a FILE (JSON, or canonical CBOR), a HOME (the policy in force there; another process
may hold it) or preset:NAME. Exit code 5, no answer: the analysis reached its limit, or a replay
could not ask about every call.")]
pub(crate) enum Policy {
    /// Check that a document is sound, and look for what is odd about it.
    Check(check::Check),
    /// Print a policy's hash.
    Hash(show::Hash),
    /// Print a policy's document, as `policy set` takes it.
    Show(show::Show),
    /// Put a policy in force, or ask one beside it for the record only.
    Set(set::Set),
    /// Let one tool run unasked for one agent, for a while.
    Allow(allow::Allow),
    /// Say what comes of a call, and why.
    Explain(explain::Explain),
    /// Hold a document against a table of calls and verdicts.
    Test(test::Test),
    /// Find a call of which two policies say different things, or say that there is none.
    Diff(diff::Diff),
    /// Say which agents can use a tool, and how.
    WhoCan(who_can::WhoCan),
    /// Ask another policy about every call in a home's log.
    Replay(replay::Replay),
}

impl Policy {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        match self {
            Self::Check(check) => check.run(out),
            Self::Hash(hash) => hash.run(out),
            Self::Show(show) => show.run(out),
            Self::Set(set) => set.run(out),
            Self::Allow(allow) => allow.run(out),
            Self::Explain(explain) => explain.run(out),
            Self::Test(test) => test.run(out),
            Self::Diff(diff) => diff.run(out),
            Self::WhoCan(who_can) => who_can.run(out),
            Self::Replay(replay) => replay.run(out),
        }
    }
}
