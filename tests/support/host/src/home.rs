//! A home, from its folder to its end.

use std::path::{Path, PathBuf};

use syscap::format::{Budget, Dimension};
use syscap::prelude::Runtime;
use syscap::verify::Soundness;
use tempfile::TempDir;

/// Where a home can be made, in a folder that is removed with the first.
pub fn new_home() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    (folder, home)
}

/// Closes a home, whose log must be sound.
pub fn end(rt: &Runtime, home: &Path) {
    rt.close().unwrap();
    assert_eq!(crate::verdict(home), Soundness::Sound);
}

/// A budget that no test uses up.
pub fn ample() -> Budget {
    let dimensions = [
        Dimension::Calls,
        Dimension::DiskFiles,
        Dimension::DiskWriteBytes,
        Dimension::WallUs,
        Dimension::CpuUs,
    ];
    let more = |budget: Budget, dimension| budget.with(dimension, 1 << 40);
    dimensions.into_iter().fold(Budget::standard(), more)
}
