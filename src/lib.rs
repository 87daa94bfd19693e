#![doc = include_str!("../README.md")]
#![deny(clippy::as_conversions)]

mod args;
mod clock;
mod core;
mod entropy;
mod error;
mod grant;
mod home;
mod keys;
mod run;
mod runtime;
mod session;

pub use crate::{
    args::{Args, IntoArg},
    clock::SystemClock,
    entropy::SystemEntropy,
    error::Error,
    grant::Grant,
    home::Home,
    keys::{FileKeys, Signer, SignerError},
    runtime::{Options, Runtime},
    session::Session,
};
pub use syscap_audit as audit;
pub use syscap_kernel as kernel;
pub use syscap_policy as policy;
pub use syscap_syscalls as syscalls;

/// What most programs need.
pub mod prelude {
    pub use std::time::Duration;

    pub use syscap_kernel::{
        budget::{Budget, Dimension},
        envelope::{Status, ToolResult},
        id::{AgentId, TokenId, ToolId},
        reason::Reason,
    };

    pub use crate::{Error, Grant, Options, Runtime, Session, args};
}
