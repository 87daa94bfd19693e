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
#![deny(clippy::as_conversions)]

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

mod args;
pub mod artifact;
mod asks;
mod attach;
mod backoff;
mod bell;
mod carried;
#[cfg(feature = "sqlite")]
mod client_answer;
mod clock;
mod compared;
mod core;
mod counters;
mod engine;
mod entropy;
mod error;
mod files;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
mod grant;
mod guard;
mod holding;
mod home;
pub mod host;
mod inspect;
mod issuing;
pub mod keys;
pub mod learn;
mod notify;
mod operator;
mod options;
mod org;
pub mod plain;
mod pool;
mod proposals;
pub mod provide;
mod recover;
pub mod remedy;
mod remote;
pub mod resume;
mod run;
mod runtime;
pub mod secrets;
mod sent;
mod session;
mod state;
mod submit;
mod tools;
pub mod verify;
pub mod view;

pub use crate::{
    args::{Args, IntoArg},
    attach::{HolderStatus, Phase, SessionTicket, Versions},
    clock::SystemClock,
    counters::Counts,
    entropy::SystemEntropy,
    error::Error,
    grant::Grant,
    home::Home,
    inspect::Inspection,
    keys::{FileKeys, Signer, SignerError},
    operator::Operator,
    options::Options,
    recover::Unresolved,
    remote::ProvedSession,
    runtime::Runtime,
    sent::{CallContext, CallWith, Written},
    session::Session,
    state::{AgentState, Changed},
    submit::{Beside, Configured, PolicyPlace},
};
/// What comes from a holder, read where a process waits for other things too.
pub mod incoming {
    pub use crate::attach::{Drained, Incoming, ReadBy};
}

/// Calls that wait for a person, and what is answered.
pub mod approvals {
    pub use crate::asks::{SetTerms, WaitingCall, reason_given};
    pub use crate::carried::{CarriedAnswer, CarriedAsk, CheckedAsk, Unsound};
    #[cfg(feature = "sqlite")]
    pub use crate::client_answer::{AskWatch, answer_in_client};
    pub use crate::compared::{Changed, Compared};
    pub use crate::proposals::Proposal;
    pub use crate::session::Waited;
}

pub use syscap_analysis as analysis;
pub use syscap_audit as audit;
pub use syscap_format as format;
pub use syscap_kernel as kernel;
pub use syscap_launch as launch;
pub use syscap_policy as policy;
pub use syscap_syscalls as syscalls;

/// What most programs need.
pub mod prelude {
    pub use std::time::Duration;

    pub use syscap_format::json::Escapes;
    pub use syscap_format::{
        AgentId, Budget, Dimension, Reason, Retry, Status, TokenId, ToolId, ToolResult,
    };

    pub use crate::{Error, Grant, Options, Runtime, Session, args, session::Waited};
}
