//! The parts that keep a started program from a home: paths compared by open handles, guarded
//! folders, places that runs may write, and the environment of a confined program.

pub mod environment;
mod guarded;
mod place;
pub mod runs;
mod scratch;

use std::io;
use std::path::{Path, PathBuf};

pub use self::guarded::{Guarded, GuardedFolder, Reaches};
pub use self::place::{Link, Place, Way};
pub use self::scratch::Scratch;

/// Why a path can't be opened to a program.
#[derive(Debug, thiserror::Error)]
pub enum BoundaryError {
    /// It can't be looked at.
    #[error("{}: {source}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// A program would reach the home by it.
    #[error("{} {how}", path.display())]
    Guarded {
        /// The path.
        path: PathBuf,
        /// How it reaches the home.
        how: Reaches,
    },
    /// A file of the home or its keys has a second name.
    #[error(
        "{} holds a file that has a second name (a hard link), which may lie where the agent works: \
         remove that name (find -links +1)",
        .0.display()
    )]
    Linked(PathBuf),
}

impl BoundaryError {
    /// One of a path.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { path: path.to_path_buf(), source }
    }
}
