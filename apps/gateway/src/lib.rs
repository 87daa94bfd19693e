//! A gateway: MCP servers behind a kernel.
//!
//! It stands between a client and the servers that the client would start itself. Each
//! `tools/call` goes to the kernel, which decides and records; only then does the server see it,
//! and only what the kernel releases comes back. What a server offers is pinned, its results are
//! untrusted, and a list holds only what the session's token grants.
//!
//! Prompts, resources and completions pass through without a record: they are no calls. They can
//! be switched off.
//!
//! Both wires of the protocol are spoken on either side: the newest revision, without sessions,
//! and the one before it. Nothing is passed on as it stands: each answer is made anew for the
//! wire on which it goes.
#![deny(clippy::as_conversions)]
#![allow(deprecated, reason = "the older wire is spoken too, all of it")]

mod calls;
mod catalog;
mod client;
mod config;
mod data;
mod effect;
mod face;
mod flight;
mod home;
mod hub;
mod keep;
mod kernelside;
mod life;
mod listing;
mod lists;
mod manifest;
mod names;
mod offer;
mod passing;
mod provider;
mod refusal;
mod result;
mod say;
mod server;
mod upstream;
mod watch;
mod words;

use std::{path::PathBuf, time::Duration};

use syscap::format::id::{AgentId, TokenId};

pub use crate::{
    config::snippet,
    effect::{BadClassRule, ClassRule, Hints},
    refusal::META_KEY,
    server::ServerCommand,
    words::{BadWords, split},
};

/// How a gateway is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The home.
    pub home: PathBuf,
    /// The agent that calls.
    pub agent: AgentId,
    /// Its token; where none is named its newest that lives, and where it has none a new one.
    pub token: Option<TokenId>,
    /// How long a token lives that is issued here.
    pub expires: Duration,
    /// The servers.
    pub servers: Vec<ServerCommand>,
    /// Whether names carry their server's also where there is only one.
    pub prefix: bool,
    /// Whether a token that is issued here grants the home's own tools too.
    pub built_in: bool,
    /// What the operator says of tools.
    pub classes: Vec<ClassRule>,
    /// Whether the operator vouches for the servers' own hints.
    pub hints: Hints,
    /// Whether the operator vouches for what the servers' results say; as on record where not.
    pub trust_results: bool,
    /// How long a call may run; as on record where it is not said, at first a minute.
    pub timeout: Option<Duration>,
    /// Largest result of a call, in bytes; as on record where it is not said, at first 1 MiB.
    pub result_bytes: Option<u64>,
    /// Whether prompts pass through.
    pub prompts: bool,
    /// Whether resources pass through.
    pub resources: bool,
}

impl Options {
    /// With what holds where nothing is said.
    #[must_use]
    pub fn new(home: PathBuf, agent: AgentId, servers: Vec<ServerCommand>) -> Self {
        Self {
            home,
            agent,
            token: None,
            expires: Duration::from_hours(12),
            servers,
            prefix: false,
            built_in: false,
            classes: Vec::new(),
            hints: Hints::Unconfirmed,
            trust_results: false,
            timeout: None,
            result_bytes: None,
            prompts: true,
            resources: true,
        }
    }

    /// Whether clients see `NAME_tool` instead of `tool`.
    #[must_use]
    pub fn is_prefixed(&self) -> bool {
        self.prefix || self.servers.len() > 1
    }
}

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

/// Why a gateway did not run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The home can't be used.
    #[error(transparent)]
    Home(#[from] syscap::Error),
    /// The threads that it needs can't be had.
    #[error("no threads: {0}")]
    Threads(std::io::Error),
    /// It could not begin.
    #[error("{0}")]
    Begin(String),
    /// Two servers have one name, or one has a name that is not of its form.
    #[error("{0:?} can't be the name of a server here")]
    Name(String),
}

/// Serves a client on standard input and output until it ends its input, or the process is asked
/// to end.
///
/// # Errors
/// [`Error`], where it could not serve.
pub fn run(options: Options) -> Result<(), Error> {
    life::run(options)
}
