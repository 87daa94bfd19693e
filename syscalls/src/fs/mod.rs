//! `fs.read`, `fs.list`, `fs.stat`, `fs.search`, `fs.write`, `fs.edit`, `fs.move`, `fs.delete`.
//!
//! A path is relative to the agent's workspace, or begins with the name of a granted root
//! (`shared/...`). It is resolved by components, checked against the token's path scope, and
//! then opened beneath the base directory by handle; see [`crate::beneath`] for what that
//! keeps out.

mod condition;
mod delete;
mod diff;
mod edit;
mod list;
pub(crate) mod path;
mod read;
mod rename;
mod search;
mod shown;
mod stat;
mod write;

pub use edit::EDIT_BYTES_MAX;
pub use list::LIST_MAX;
pub use read::{READ_BYTES_MAX, ReadFile};
pub use search::{SEARCH_BYTES_MAX, SEARCH_FILES_MAX};
pub use write::{WRITE_BYTES_MAX, WriteFile};

pub(crate) use condition::{digest_of, hex, sha256};
pub(crate) use write::{meter_of, temp_name};

use std::sync::Arc;

use syscap_format::{AgentId, EffectClass, Manifest, Reason, Refused, TxOutcome, dimension};
use syscap_kernel::Registry;

use crate::beneath::{Effect, FolderMode, FsError, Location, Opener};
use crate::calls::{self, Changes, NotAdded, PlannedChange, PlannedRead, Reads};

/// The dimension of a grant that holds path scopes.
pub const PATH_DIMENSION: &str = dimension::PATH.name;

/// The file tools over one base directory.
#[derive(Clone, Debug)]
pub struct Files {
    base: Arc<dyn Opener>,
}

impl Files {
    /// The tools over an open base.
    pub fn over(base: Arc<dyn Opener>) -> Self {
        Self { base }
    }

    /// The file backend, for other tools that keep files there.
    pub const fn base(&self) -> &Arc<dyn Opener> {
        &self.base
    }

    /// Makes an agent's workspace, where it is missing.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn prepare(&self, agent: &AgentId) -> Result<(), FsError> {
        let folder = agent.folder();
        let workspace = Location::new(&["agents", folder.as_str(), "workspace"])?;
        self.base.make_folders(&workspace, FolderMode::Private).map(|_| ())
    }

    /// Makes the named root that a path begins with, where it is missing.
    ///
    /// # Errors
    /// What the operating system says of the root.
    pub fn prepare_root(&self, path: &str) -> Result<(), FsError> {
        let root = path.split('/').find(|name| !name.is_empty());
        self.base.make_folders(&Location::new(root.as_slice())?, FolderMode::Private).map(|_| ())
    }

    /// Looks at what there is of a path that begins with a named root. It changes nothing.
    ///
    /// # Errors
    /// [`FsError::Home`] where the root is a home, or the path leads into one; [`FsError`] where it
    /// is no path. It may become a home later: then it is not opened.
    pub fn check_root(&self, path: &str) -> Result<(), FsError> {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        match self.base.visit(&Location::new(&names)?) {
            Err(FsError::Home) => Err(FsError::Home),
            _ => Ok(()),
        }
    }

    /// Adds the eight tools.
    pub fn add_to(&self, registry: &mut Registry) -> Result<(), NotAdded> {
        calls::add_read::<ReadFile>(registry, &self.base)?;
        calls::add_read::<list::ListFolder>(registry, &self.base)?;
        calls::add_read::<stat::LookAt>(registry, &self.base)?;
        calls::add_read::<search::Search>(registry, &self.base)?;
        calls::add::<WriteFile>(registry, &self.base)?;
        calls::add::<edit::EditFile>(registry, &self.base)?;
        calls::add::<rename::MoveFile>(registry, &self.base)?;
        calls::add::<delete::DeletePath>(registry, &self.base)
    }
}

/// `fs.read`, and a call of it that is planned.
pub type FsRead = Reads<ReadFile>;
/// See [`FsRead`].
pub type FsReadPlan = PlannedRead<ReadFile>;
/// `fs.write`, and a call of it that is planned.
pub type FsWrite = Changes<WriteFile>;
/// See [`FsWrite`].
pub type FsWritePlan = PlannedChange<WriteFile>;

/// The manifest that the tools have in common: names, aliases, the path dimension.
fn manifest(verb: &str, effect: EffectClass) -> Option<Manifest> {
    use syscap_format::ToolId;

    let manifest = Manifest::new(ToolId::new(&format!("fs.{verb}"))?, effect)
        .alias(ToolId::new(&format!("fs_{verb}"))?)
        .alias(ToolId::new(&format!("file_{verb}"))?)
        .needs(PATH_DIMENSION);
    Some(manifest)
}

/// The outcome of a failed change.
pub(crate) const fn tx_of(effect: Effect) -> TxOutcome {
    match effect {
        Effect::NotDone => TxOutcome::NoOp,
        Effect::Partly => TxOutcome::RolledBack,
        Effect::Unknown => TxOutcome::Unknown,
    }
}

/// The refusal for an error of the file layer. The path stands in the call; it is not repeated.
pub(crate) fn refusal(error: FsError) -> Refused {
    let reason = match error {
        FsError::BadName | FsError::NameTooLong => Reason::BadPath,
        FsError::NotFound => Reason::NotFound,
        FsError::IsDirectory | FsError::NotRegular | FsError::ManyLinks => Reason::NotAFile,
        FsError::NotDirectory => Reason::NotAFolder,
        FsError::OtherDevice | FsError::Escapes => Reason::OutOfScope,
        FsError::Link => Reason::Link,
        FsError::TooLarge => Reason::FileTooLarge,
        FsError::Exists => Reason::Exists,
        FsError::NotEmpty => Reason::NotEmpty,
        FsError::Changed => Reason::Changed,
        // A home is told from what the system forbids by nobody but its owner.
        FsError::Denied | FsError::Home => Reason::AccessDenied,
        FsError::NoSpace => Reason::DiskFull,
        FsError::Busy => Reason::Busy,
        FsError::Unsupported => Reason::Unsupported,
        FsError::Refused => Reason::OverHold,
        _ => Reason::Failed,
    };
    let refused = Refused::new(reason).field("path").got(&error.to_string());
    match reason {
        Reason::NotAFile => refused.allowed("a regular file"),
        Reason::NotAFolder => refused.allowed("a folder, and folders on the way"),
        Reason::Exists => refused.allowed("a name that is free"),
        Reason::BadPath => refused.allowed("another name"),
        _ => refused,
    }
}
