//! `shell` and `shell_script`: programs, confined, in the agent's workspace.
//!
//! Which programs a call may start is in the token, in the dimension [`PROGRAM_DIMENSION`]: names
//! of programs of the system, or absolute paths. It gets the workspace (all of it, so the token
//! must permit all of it), the system's own folders to read and execute, and nothing else; see
//! `syscap-launch` for how that is held. It is started only where it can be confined as well as
//! the call says, and a call can say less than `contained` only where the token lets it,
//! in [`CONFINEMENT_DIMENSION`].
//!
//! A program opens files without asking. So what it says carries the label of all that lies in the
//! workspace, and each file that it changes gets that label, and the session's.

use syscap_format::dimension;

#[cfg(feature = "shell")]
mod outcome;
#[cfg(feature = "shell")]
mod plan;
#[cfg(feature = "shell")]
mod programs;
#[cfg(feature = "shell")]
mod run;
#[cfg(feature = "shell")]
mod script;

#[cfg(feature = "shell")]
pub use self::{
    plan::{ARGUMENTS_MAX, SCRIPT_BYTES_MAX},
    programs::{Programs, Shell},
    run::ShellPlan,
};

/// The dimension of a grant that names programs.
pub const PROGRAM_DIMENSION: &str = dimension::PROGRAM.name;
/// The dimension of a grant that names what commands may do beside running programs and touching
/// files: the names of [`Mark`](crate::marks::Mark)s. A script is not read: with this
/// dimension in its grant it asks for `unknown`.
pub const DOES_DIMENSION: &str = dimension::DOES.name;
/// The dimension of a grant that names networks: `loopback`, `host`.
pub const NETWORK_DIMENSION: &str = dimension::NETWORK.name;
/// The dimension of a grant that names a level of confinement below the best: `confined`.
pub const CONFINEMENT_DIMENSION: &str = dimension::CONFINEMENT.name;
