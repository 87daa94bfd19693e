//! The data folder: `SYSCAP_DATA`, else `../shared/data` beside the checkout.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::{env, fs, path::PathBuf};

/// A JSON file of the data folder, or `None`, said aloud, where there is no such folder. A file
/// that is missing from an existing folder is an error.
pub(crate) fn json(name: &str) -> Option<serde_json::Value> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = env::var_os("SYSCAP_DATA").map_or_else(beside, PathBuf::from);
    if !folder.is_dir() {
        eprintln!("skipped: no SYSCAP_DATA");
        return None;
    }
    Some(serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap())
}
