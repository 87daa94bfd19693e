//! `syscap token`: what agents may do.

mod hit;
mod issue;
mod name;
mod revoke;
mod show;
mod tree;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use syscap::format::{Dimension, UnixMillis};
use syscap::kernel::TokenView;

pub(crate) use issue::scopes;
pub(crate) use name::TokenName;
pub(crate) use revoke::{Revoke, said};

use crate::exit::{Ended, Exit, tell};
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
        let home = runtime::look(&self.home)?;
        let kernel = home.kernel();
        let now = now(kernel.now());
        if kernel.tokens().next().is_none() {
            let home = word_of(&self.home);
            tell(&format!(
                "no tokens; issue one: syscap token issue {home} --agent NAME --tool TOOL"
            ));
        }
        for token in kernel.tokens() {
            let standing = Standing::of(&token, now);
            let tools: Vec<&str> =
                token.body.grants.iter().map(|(tool, _)| tool.as_str()).collect();
            let text = format!(
                "{}  {:<9} {}  {}  {}",
                token.id,
                standing.name(),
                token.body.expires,
                token.body.agent,
                tools.join(",")
            );
            let json = Object::new()
                .shown("token_id", token.id)
                .shown("agent", &token.body.agent)
                .text("standing", standing.name())
                .shown("expires", token.body.expires)
                .json("tools", &array(tools.iter().map(|tool| quote(tool))))
                .amounts("used", &token.used)
                .amounts("left", &token.left);
            out.both(&text, json)?;
        }
        Ok(Exit::Done)
    }
}

/// The usability of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Revoked,
    /// It was not renewed in time: it counts as revoked.
    Lapsed,
    Expired,
    Early,
    /// Needs a newer list of revocations.
    Stale,
    /// It lets no more calls through.
    Spent,
    Live,
}

impl Standing {
    fn of(token: &TokenView<'_>, now: UnixMillis) -> Self {
        if token.revoked {
            Self::Revoked
        } else if token.is_revoked(now) {
            Self::Lapsed
        } else if now >= token.body.expires {
            Self::Expired
        } else if now < token.body.not_before {
            Self::Early
        } else if token.fresh_until.is_some_and(|until| now >= until) {
            Self::Stale
        } else if token.exhausted || token.left.get(Dimension::Calls) == 0 {
            Self::Spent
        } else {
            Self::Live
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::Lapsed => "lapsed",
            Self::Expired => "expired",
            Self::Early => "not_yet",
            Self::Stale => "stale",
            Self::Spent => "spent",
            Self::Live => "live",
        }
    }
}

/// The time at which a kernel that opened the home now would start.
pub(crate) fn now(last: UnixMillis) -> UnixMillis {
    use syscap::kernel::Clock as _;

    last.max(syscap::SystemClock.read().wall)
}
