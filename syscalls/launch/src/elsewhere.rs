//! Platforms without confinement: the same names, and one answer.
use std::path::Path;

use crate::{LaunchError, Plan, Report};

/// See Linux.
pub const fn entry() {}

/// See Linux.
#[derive(Debug)]
pub struct Launcher(());

/// See Linux.
#[derive(Debug)]
pub struct Running(());

/// See Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// See Linux.
#[derive(Debug)]
pub enum Said {
    /// See Linux.
    Output(Stream, Vec<u8>),
    /// See Linux.
    Connected(std::os::fd::OwnedFd),
    /// See Linux.
    Ended(Report),
}

/// See Linux.
#[derive(Debug)]
pub struct Orders(());

/// See Linux.
#[derive(Debug)]
pub struct Lease(());

impl Lease {
    /// Nothing runs.
    pub const fn is_held(&self) -> bool {
        false
    }
}

/// See Linux.
#[derive(Debug)]
#[non_exhaustive]
pub struct Serving {
    /// See Linux.
    pub child: std::process::Child,
    /// See Linux.
    pub stdin: std::process::ChildStdin,
    /// See Linux.
    pub stdout: std::process::ChildStdout,
    /// See Linux.
    pub stderr: std::process::ChildStderr,
    /// See Linux.
    pub achieved: Option<crate::Achieved>,
    /// See Linux.
    pub lease: Lease,
}

impl Orders {
    /// Nothing runs.
    pub const fn cancel(&self) {}

    /// Nothing runs.
    pub const fn signal(&self, _: u8) {}
}

impl Launcher {
    /// # Errors
    ///
    /// [`LaunchError::Unsupported`].
    pub fn open(_: &Path) -> Result<Self, LaunchError> {
        Err(LaunchError::Unsupported)
    }

    /// # Errors
    ///
    /// [`LaunchError::Unsupported`].
    pub fn this() -> Result<Self, LaunchError> {
        Err(LaunchError::Unsupported)
    }

    /// # Errors
    ///
    /// [`LaunchError::Unsupported`].
    pub fn start(&self, _: &Plan) -> Result<Running, LaunchError> {
        Err(LaunchError::Unsupported)
    }

    /// # Errors
    ///
    /// [`LaunchError::Unsupported`].
    pub fn serve(&self, _: Plan) -> Result<Serving, LaunchError> {
        Err(LaunchError::Unsupported)
    }

    /// # Errors
    ///
    /// [`LaunchError::Unsupported`].
    pub fn can_hide(&self, _: Vec<std::os::fd::OwnedFd>) -> Result<(), LaunchError> {
        Err(LaunchError::Unsupported)
    }
}

impl Running {
    /// # Errors
    ///
    /// [`LaunchError::Unsupported`].
    pub fn recv(&mut self) -> Result<Said, LaunchError> {
        Err(LaunchError::Unsupported)
    }

    /// Nothing runs.
    pub fn cancel(&self) {}

    /// # Errors
    ///
    /// [`LaunchError::Unsupported`].
    pub const fn begun(&mut self) -> Result<crate::Achieved, LaunchError> {
        Err(LaunchError::Unsupported)
    }

    /// # Errors
    ///
    /// [`LaunchError::Unsupported`].
    pub const fn orders(&self) -> Result<Orders, LaunchError> {
        Err(LaunchError::Unsupported)
    }
}
