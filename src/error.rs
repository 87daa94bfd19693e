//! The errors that a host can get. A refused call is not among it: that is an answer.

use std::{io, path::PathBuf};

use syscap_format::{Refused, TokenId, ToolError, ToolId};
use syscap_kernel::{Halt, NoEntropy, RegistryError, StoreError};
use syscap_syscalls::{beneath::FsError, calls::NotAdded};

use crate::keys::kinds::{KeyFileError, SignerError};
use crate::transport::versions::Versions;

/// An error of the runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No store was given, and this build has none of its own: it was built without `sqlite`.
    #[error("no store was given, and this build has no SQLite")]
    NoStore,
    /// The home was closed, by this process or for an operator: open it again.
    #[error("the home was closed")]
    Closed,
    /// The kernel has stopped, or did not start: no call is answered any more.
    #[error("the kernel has stopped: {0}")]
    Halted(Halt),
    /// The home can't be opened, or its log failed.
    #[error("{}", of_store(.0))]
    Home(StoreError),
    /// A policy document is not sound.
    #[error("the policy is not sound: {0}")]
    Policy(#[from] syscap_policy::LoadError),
    /// A control event, a token or a session was refused.
    #[error("refused: {0}")]
    Refused(#[from] Refused),
    /// A call was refused or failed, and its result was asked for.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A signature can't be had.
    #[error("signing failed: {0}")]
    Signer(#[from] SignerError),
    /// A key file can't be used.
    #[error("{path}: {why}")]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// The fault of the file.
        why: KeyFileError,
    },
    /// Another process rotates a key in this folder.
    #[error("another process rotates a key in {0}")]
    KeysBusy(PathBuf),
    /// A tool is not on record yet, and the operator's key can't put it there without a person.
    #[error(
        "{0} is not on record, and the operator's key signs only where a person is asked; \
             `syscap tools accept` puts it there"
    )]
    Awaits(ToolId),
    /// Randomness can't be had.
    #[error(transparent)]
    Entropy(#[from] NoEntropy),
    /// The tools contradict each other.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// More tools were offered than a home takes.
    #[error("too many tools are known here; take some off with `forget`")]
    TooManyTools,
    /// The files' base directory can't be used.
    #[error("the base directory can't be used: {0}")]
    Base(FsError),
    /// The base directory contains the home, or lies in it: an agent could reach keys and log.
    #[error("{0} and a home, or a key of one, lie in one another")]
    BaseContainsHome(PathBuf),
    /// The base belongs to another home. Two homes over one would read and change each other's.
    #[error(
        "{base} is the base of home {by}, in {there}, and not of {home}: --shared-base gives this home's \
         agents folders of their own there; --take-base takes it, where that home is gone"
    )]
    BaseTaken {
        /// The base.
        base: PathBuf,
        /// The other home.
        by: syscap_format::HomeId,
        /// The folder of the other home.
        there: PathBuf,
        /// The home that was to be opened or made.
        home: PathBuf,
    },
    /// Another process holds the claim on a base: one that serves a copy of this home.
    #[error("another process serves the agents' folders of {0}")]
    BaseBusy(PathBuf),
    /// A trust file is not of its form, or of another version.
    #[error("{0} is no trust file of this version")]
    Trust(PathBuf),
    /// The folder of a new home is not empty.
    #[error("{0} is not empty: a home needs a folder of its own; delete an unfinished one")]
    NotEmpty(PathBuf),
    /// A name is not of the form that it must have.
    #[error("{what} is not of its form: {got:?}")]
    BadName {
        /// The kind of thing that was named.
        what: &'static str,
        /// The name.
        got: String,
    },
    /// The named thing does not exist, or its name is not the caller's to use.
    #[error("there is no such thing: {what}, {got:?}")]
    NoSuch {
        /// The kind of thing that was named.
        what: &'static str,
        /// The name.
        got: String,
    },
    /// A token that was derived from another can't be issued once more: it would be a root.
    #[error(
        "token {token} was attenuated from {parent}: issue that one once more, or attenuate it"
    )]
    Attenuated {
        /// The token.
        token: TokenId,
        /// The parent of the token.
        parent: TokenId,
    },
    /// A scope contradicts itself.
    #[error("the grant is not sound: {0}")]
    Scope(#[from] syscap_format::ScopeError),
    /// No thread was available for a blocking call: nothing was sent.
    #[error("the call was not started: there was no thread for it")]
    NotStarted,
    /// A call broke off in this process: what it came to is on record, if anything.
    #[error("the call broke off before its answer came")]
    BrokeOff,
    /// The process that held the home went before it had answered: what was asked of it may have
    /// been done, and what came of it stands in the log after the recovery.
    #[error("the process that held the home went before it had answered")]
    HolderGone,
    /// The holder could not do what was asked of it.
    #[error("the holder of the home: {0}")]
    Holder(String),
    /// Only the process that holds the home can do it.
    #[error("another process holds the home, and only that one can do this")]
    NotHolder,
    /// No process serves the home; and why none could be started, where that was tried.
    #[error("no process serves {}{}", home.display(), of_start(why))]
    NoServer {
        /// The home.
        home: PathBuf,
        /// Why none could be started; empty where that was not tried.
        why: String,
    },
    /// Another process holds the home, and serves it to nobody.
    #[error("another process holds {0} and does not serve it")]
    Unserved(PathBuf),
    /// So many processes are attached to the holder that it takes no other.
    #[error("the process that holds {0} serves as many others as it can")]
    Full(PathBuf),
    /// Another home stands where the one was that this process has used.
    #[error("{0} is another home now than the one that was in use")]
    OtherHome(PathBuf),
    /// The home belongs to another user: what this process made there the owner could not use.
    #[error("{home} belongs to user {owner}, and a home has one user")]
    NotOwner {
        /// The home.
        home: PathBuf,
        /// The owner's number.
        owner: u32,
    },
    /// A process of another user holds the home.
    #[error("a process of another user holds {0}")]
    Foreign(PathBuf),
    /// The holder speaks no version of the protocol that this process does: it is another version
    /// of this program. An [`Operator`](crate::Operator) can stop it even so.
    #[error("the holder speaks {holder} of the protocol, and this process {ours}")]
    Version {
        /// The versions of the server.
        holder: Versions,
        /// The versions of this process.
        ours: Versions,
    },
    /// A file of the home can't be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// Why no server could be started, where that was tried.
fn of_start(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(", and none could be started: {why}") }
}

/// The store's error; one of the system's in the system's own words.
fn of_store(error: &StoreError) -> String {
    match error {
        StoreError::Io(code) => {
            let error = io::Error::from_raw_os_error(*code);
            format!("the home's log can't be read or written: {error}")
        }
        error => format!("the home can't be opened: {error}"),
    }
}

impl From<NotAdded> for Error {
    fn from(error: NotAdded) -> Self {
        match error {
            NotAdded::Registry(error) => Self::Registry(error),
            _ => Self::BadName { what: "a built-in tool", got: String::new() },
        }
    }
}

impl From<Halt> for Error {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Store(store) => Self::Home(store),
            halt => Self::Halted(halt),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Home(error)
    }
}

impl From<FsError> for Error {
    fn from(error: FsError) -> Self {
        Self::Base(error)
    }
}

/// Names the file that an error of the operating system belongs to.
pub(crate) fn at(path: &std::path::Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_path_buf();
    move |source| Error::File { path, source }
}
