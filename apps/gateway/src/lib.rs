//! A gateway: MCP servers behind a kernel.
//!
//! It stands between a client and the servers that the client would start itself. Each `tools/call`
//! goes to the kernel, which decides and records; only then does the server see it, and only what
//! the kernel releases comes back. A server's definitions are pinned, its results are untrusted,
//! and a list holds only the tools that the session's token grants.
//!
//! Prompts, resources and completions are reads of tools of their own, and what a server asks of
//! the client, where the operator lets it, is a call of one too: all that passes is decided and
//! recorded the same way.
//!
//! Both wires of the protocol are spoken on either side: the newest revision, without sessions, and
//! the one before it. Each answer is made anew for its wire; nothing is passed on as it stands.
//!
//! | folder | what |
//! |---|---|
//! | `life`, `begin` | the process, from start to end |
//! | `client` | the one client: its lines, its requests, what it is told and asked |
//! | `governed` | what the kernel decides about: calls, prompts, resources; tools as they are pinned |
//! | `token` | the home, and the token that the client calls by: chosen, renewed, ended |
//! | `upstream` | the servers: started, listed, asked, watched |
//! | `uses` | inside a run: the client's uses, between its hook and its gateways |
//! | `gateway` | what these share: state, no behaviour |
#![deny(clippy::as_conversions)]
#![allow(deprecated, reason = "the older wire is spoken too, all of it")]

mod begin;
mod client;
mod config;
mod error;
mod gateway;
mod governed;
mod life;
mod options;
mod say;
mod token;
mod upstream;
mod uses;
mod words;

pub use crate::{
    config::{KnownClient, snippet},
    error::Error,
    governed::effect::{BadClassRule, Because, ClassRule, Hints},
    governed::refusal::{META_KEY, MISSING_KEY, TOKEN_KEY},
    governed::survey::{Proposed, survey},
    life::Settled,
    options::{Opened, Options, Question, ServerCommand, ServerView},
    uses::{Held, Uses},
    words::{BadWords, split},
};

/// True if that can be a server's name: a letter, then letters, digits and underscores, all of them
/// small, at most 24.
#[must_use]
pub fn is_server_name(name: &str) -> bool {
    governed::names::is_server(name)
}

/// A server's name from its command.
#[must_use]
pub fn server_name(command: &[String]) -> String {
    governed::names::server_of(command)
}

/// Starts the servers of a run before its program, has them list their tools, puts those on record
/// and settles the token that the run's gateway calls by. The servers have ended afterwards.
///
/// # Errors
/// [`Error::Home`], [`Error::Name`], [`Error::Unsafe`], [`Error::Threads`]; [`Error::Begin`] where no
/// token can be had.
pub fn settle(options: Options) -> Result<Settled, Error> {
    life::settle(options)
}

/// Serves a client on standard input and output until it ends its input, or the process is asked
/// to end.
///
/// # Errors
/// [`Error`], where it could not serve.
pub fn run(options: Options) -> Result<(), Error> {
    life::run(options)
}
