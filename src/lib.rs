//! A capability kernel for AI agents' tools: every tool call goes through here, or does not happen.
//!
//! A home is a folder with a log, keys and the agents' files; one process holds it, with a kernel.
//! A [`Runtime`] is a home, whoever holds it. It issues capability tokens and opens [`Session`]s;
//! a session's calls are checked against its token, decided by the policy engine, held to the
//! budget, run by the kernel and recorded.
//!
//! ```
//! use syscap::prelude::*;
//!
//! # fn main() -> Result<(), Error> {
//! # let folder = tempfile::tempdir().expect("a temporary folder");
//! # std::env::set_current_dir(&folder).expect("it is there");
//! let rt = Runtime::create("home")?;
//! let grant = Grant::to("researcher").tools(["fs.read", "fs.write"]).workspace();
//! let token = rt.issue(grant.budget(Budget::standard()).expires_in(Duration::from_secs(3600)))?;
//! let agent = rt.session("researcher", token)?;
//! agent.call("fs.write", args! { "path": "a.txt", "text": "hello" })?;
//! let read = agent.call("fs.read", args! { "path": "a.txt" })?;
//! println!("{} record {}", read.text()?, read.receipt().outcome_seq);
//! # assert_eq!(read.text()?, "hello");
//! rt.close()
//! # }
//! ```
//!
//! [`Session::call`] is an `Err` only when the kernel has stopped. A refusal is an answer, with a
//! record of its own; `text()` and `value()` of the result raise it.
//!
//! | to read | where |
//! |---|---|
//! | a home as a program uses it, in this process or by another: [`Runtime`], [`Session`] | `runtime` |
//! | the process that holds a home: what it signs, offers, takes in | `server` |
//! | the socket between them: frames, connections | `transport` |
//! | the loop around the kernel: commits, runs, time limits | `driver` |
//! | tools of the host's own: [`host`], [`provide`] | `tools` |
//! | calls that wait for a person | [`approvals`] |
//! | keys and secrets | [`keys`] |
//! | a log that is looked at, verified or learnt from | `inspect` |
//! | the folder, and how it is opened: [`Options`] | `home` |
//! | what a program that syscap starts must not reach, or may: [`boundary`] | `boundary` |
//!
//! Features, all on by default: `calendar`, `http`, `mail`, `shell` and `vectors` bring the tools of
//! these names, `seal` keys sealed by a passphrase, `sqlite` homes in a file. A tool that is on record
//! and not built in is refused with `no_provider`, and the home stays as it is. Without any of them
//! a program links 56 crates, with all 124.
#![deny(clippy::as_conversions)]

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

pub mod approvals;
#[cfg(feature = "shell")]
pub mod boundary;
mod driver;
mod error;
mod home;
mod inspect;
pub mod keys;
mod runtime;
mod server;
mod tools;
mod transport;

pub use crate::driver::{clock::SystemClock, counters::Counts, entropy::SystemEntropy};
pub use crate::error::Error;
pub use crate::home::{Home, options::Options, serving::Serving};
pub use crate::inspect::granted::{Granted, GrantedTool, Left};
pub use crate::inspect::recover::Unresolved;
pub use crate::inspect::{Inspection, artifact, erase, learn, plain, remedy, verify, view};
#[cfg(feature = "http")]
pub use crate::keys::secrets;
pub use crate::keys::{FileKeys, Signer, SignerError};
pub use crate::runtime::args::{Args, IntoArg};
pub use crate::runtime::connect::{Connect, Starter};
pub use crate::runtime::grant::Grant;
pub use crate::runtime::operator::Operator;
pub use crate::runtime::remote::ProvedSession;
pub use crate::runtime::session::call::{CallContext, Written};
pub use crate::runtime::session::{Call, Session};
pub use crate::runtime::state::{AgentState, Changed};
pub use crate::runtime::submit::{Beside, Configured, PolicyPlace, PolicyWhy};
pub use crate::runtime::{Runtime, resume};
pub use crate::server::lend::SessionTicket;
pub use crate::server::offered::Prefix;
pub use crate::server::uses::Until;
pub use crate::tools::{host, provide};
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub use crate::transport::fuzz as fuzzing;
pub use crate::transport::{HolderStatus, Phase, Versions};

/// Messages of a server, for a process that waits for other input too.
pub mod incoming {
    pub use crate::transport::{Drained, Incoming, ReadBy};
}

pub use syscap_analysis as analysis;
pub use syscap_audit as audit;
pub use syscap_format as format;
pub use syscap_kernel as kernel;
#[cfg(feature = "shell")]
pub use syscap_launch as launch;
pub use syscap_policy as policy;
pub use syscap_syscalls as syscalls;

/// The names that most programs need.
pub mod prelude {
    pub use std::time::Duration;

    pub use syscap_format::json::Escapes;
    pub use syscap_format::{
        AgentId, Budget, Dimension, Reason, Retry, Status, TokenId, ToolId, ToolResult,
    };

    pub use crate::{Error, Grant, Options, Runtime, Session, approvals::Waited, args};
}
