//! A gateway: MCP servers behind a kernel.
//!
//! It stands between a client and the servers that the client would start itself. Each
//! `tools/call` goes to the kernel, which decides and records; only then does the server see it,
//! and only what the kernel releases comes back. What a server offers is pinned, its results are
//! untrusted, and a list holds only what the session's token grants.
//!
//! Prompts, resources and completions are reads of tools of their own, and what a server asks of
//! the client, where the operator lets it, is a call of one too: all that passes is decided and
//! recorded the same way.
//!
//! Both wires of the protocol are spoken on either side: the newest revision, without sessions,
//! and the one before it. Nothing is passed on as it stands: each answer is made anew for the
//! wire on which it goes.
//!
//! The layers; a file names only files beside or below it, and none around a circle:
//!
//! ```text
//! life | survey                             the process, from start to end | a look beforehand
//! face direct                               what the client sees: a server of MCP | its calls
//! begin keep | calls | passing watch        servers run | tools/call | prompts and resources
//! next renewal news                         what goes on after a refusal: words | another token
//! offer provider tools                      tools: listed, offered to the kernel, run by it
//! asks calls                                what servers ask | what the client calls
//! approval next renewal                     what goes on: by a person | in words | another token
//! gateway                                   what those share: state, no behaviour
//! home home_session | client | server upstream   the kernel | the one client | each server
//! catalog flight requests subscriptions ..  state and rules of one thing each
//! downstream                                lines from and to the client, each way with a bound
//! incoming                                  what comes from the home's holder, read by the runtime
//! capabilities manifest names standing ..    plain data and pure functions
//! ```
#![deny(clippy::as_conversions)]
#![allow(deprecated, reason = "the older wire is spoken too, all of it")]

mod approval;
mod asks;
mod begin;
mod calls;
mod capabilities;
mod catalog;
mod client;
mod config;
mod data;
mod direct;
mod disown;
mod downstream;
mod effect;
mod error;
mod face;
mod flight;
mod gateway;
mod home;
mod home_session;
mod incoming;
mod keep;
mod kernelside;
mod life;
mod listing;
mod lists;
mod manifest;
mod method;
mod missing;
mod names;
mod news;
mod next;
mod notice;
mod numbers;
mod offer;
mod options;
mod passing;
mod provider;
mod quota;
mod refusal;
mod renewal;
mod repeats;
mod requests;
mod result;
mod routes;
mod say;
mod server;
mod standing;
mod starting;
mod subscriptions;
mod survey;
mod tools;
mod twins;
mod upstream;
mod watch;
mod words;

pub use crate::{
    config::{KnownClient, snippet},
    effect::{BadClassRule, Because, ClassRule, Hints},
    error::Error,
    options::{Options, People, Question, ServerCommand},
    refusal::{META_KEY, MISSING_KEY, TOKEN_KEY},
    survey::{Proposed, survey},
    words::{BadWords, split},
};

/// Whether that can be a server's name: a letter, then letters, digits and underscores, all of
/// them small, at most 24.
#[must_use]
pub fn is_server_name(name: &str) -> bool {
    names::is_server(name)
}

/// A server's name from its command.
#[must_use]
pub fn server_name(command: &[String]) -> String {
    names::server_of(command)
}

/// Serves a client on standard input and output until it ends its input, or the process is asked
/// to end.
///
/// # Errors
/// [`Error`], where it could not serve.
pub fn run(options: Options) -> Result<(), Error> {
    life::run(options)
}
