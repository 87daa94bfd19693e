//! The places of the stores under test.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::found::Found;

/// How many names are tried: those of dead processes of the same number may be taken.
const NAMES_MAX: u32 = 1_000;
/// Numbers the kits of a process: no two have a place in common.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A folder of the kit's own, removed with all that is in it.
pub(super) struct Folder {
    path: PathBuf,
    places: u64,
}

impl Folder {
    pub(super) fn make(within: &Path) -> Result<Self, Found> {
        for _ in 0..NAMES_MAX {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = within.join(format!("syscap-kit-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path, places: 0 }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Found::Host(io::ErrorKind::AlreadyExists))
    }

    /// A place that is not there yet.
    pub(super) fn place(&mut self) -> PathBuf {
        self.places = self.places.saturating_add(1);
        self.path.join(self.places.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left over lies among temporary files.
        drop(fs::remove_dir_all(&self.path));
    }
}
