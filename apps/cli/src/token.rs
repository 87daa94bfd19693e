//! `syscap token`: what agents may do.

mod give;
mod hit;
mod issue;
mod name;
pub(crate) mod narrow;
mod revoke;
pub(crate) mod show;
mod tree;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use syscap::Runtime;
use syscap::format::{ToolId, UnixMillis};
use syscap::view::TokenInfo;

pub(crate) use give::Gift;
pub(crate) use issue::scopes;
pub(crate) use name::TokenName;
pub(crate) use revoke::{Revoke, said};

use crate::exit::{Ended, Exit, Failure, tell};
use crate::output::{Object, Out, array, quote, word_of};
use crate::runtime;

/// A command on tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Sign a token, put it on record, and print its id.
    Issue(issue::Issue),
    /// Hand on a part of a token, to the same agent or one below it; prints the new token's id. Its
    /// use is charged to all above it, and it ends with any of them.
    Attenuate(issue::Attenuate),
    /// Issue what a token grants once more, with nothing used; prints the new token's id.
    Reissue(issue::Reissue),
    /// Take tools or paths from a token: another is issued with less, what is left and the same end,
    /// and the old one is revoked.
    Narrow(narrow::Narrow),
    /// Let a token go on that must be renewed; prints the id of the token that renews it.
    Renew(issue::Renew),
    /// List the tokens of a home. Works beside the process that holds the home.
    List(List),
    /// Show which token was derived from which, and what each has used of its calls. Works beside
    /// the process that holds the home.
    Tree(tree::Tree),
    /// Show all of one token. Works beside the process that holds the home.
    Show(show::Show),
    /// End a token, and all that was derived from it, for ever.
    Revoke(Revoke),
}

impl Token {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        match self {
            Self::Issue(issue) => issue.run(out),
            Self::Reissue(reissue) => reissue.run(out),
            Self::Narrow(narrow) => narrow.run(out),
            Self::Renew(renew) => renew.run(out),
            Self::Attenuate(attenuate) => attenuate.run(out),
            Self::Tree(tree) => tree.run(out),
            Self::List(list) => list.run(out),
            Self::Show(show) => show.run(out),
            Self::Revoke(revoke) => revoke.run(out),
        }
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
        let tokens = all(&self.home)?;
        if tokens.is_empty() {
            let home = word_of(&self.home);
            tell(&format!(
                "no tokens; issue one: syscap token issue {home} --agent NAME --tool TOOL"
            ));
        }
        for token in tokens {
            let tools: Vec<&str> = token.tools.iter().map(ToolId::as_str).collect();
            let (id, standing, tools_in_one) = (token.id, token.standing.name(), tools.join(","));
            let text =
                format!("{id}  {standing:<9} {}  {}  {tools_in_one}", token.expires, token.agent);
            let json = Object::new()
                .shown("token_id", token.id)
                .shown("agent", &token.agent)
                .text("standing", standing)
                .shown("expires", token.expires)
                .json("tools", &array(tools.iter().map(|tool| quote(tool))))
                .amounts("used", &token.used)
                .amounts("left", &token.left);
            out.both(&text, json)?;
        }
        Ok(Exit::Done)
    }
}

/// All tokens, the oldest first: as the server says, where one answers and tells of all, else as the
/// log does.
fn all(home: &Path) -> Result<Vec<TokenInfo>, Failure> {
    match runtime::asked(home, Runtime::view) {
        Some(view) if usize::try_from(view.tokens_in_all) == Ok(view.tokens.len()) => {
            Ok(view.tokens.into_iter().rev().collect())
        }
        _ => {
            let log = runtime::look(home)?;
            Ok(log.tokens(now(log.kernel().now())))
        }
    }
}

/// The time at which a kernel that opened the home now would start.
pub(crate) fn now(last: UnixMillis) -> UnixMillis {
    use syscap::kernel::Clock as _;

    last.max(syscap::SystemClock.read().wall)
}
