//! Listing a directory.

use std::collections::BinaryHeap;

use rustix::fs::Dir;

use super::{base::Base, error::FsError, gate::Kind, location::Location, temp_name::is_temp};

/// How many names of one directory are looked at. A larger one is an error, since an answer
/// from a part of it would depend on the order on disk.
pub const SCAN_MAX: usize = 100_000;

/// A directory's entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The entries, in the order of their names' bytes.
    pub entries: Vec<Entry>,
    /// True if there are names behind these.
    pub truncated: bool,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name as it is on disk, which need not be UTF-8. Two names never become one.
    pub name: Vec<u8>,
    /// Its kind.
    pub kind: Kind,
    /// The size of a regular file, else 0.
    pub size_bytes: u64,
}

impl Base {
    /// Lists the first `limit` names, by bytes, of a directory.
    ///
    /// All names are read, so which ones are first and whether that is all doesn't depend on
    /// their order on disk; only names that come or go during the call may be in it or not.
    /// Each one passes the gates of a read: a file that could not be opened shows no size.
    ///
    /// # Errors
    /// Any of a walk; [`FsError::TooLarge`] for more than [`SCAN_MAX`] names.
    pub fn list(&self, at: &Location, limit: usize) -> Result<Listing, FsError> {
        let mut dir = Dir::new(self.open_directory(at.as_path())?)?;
        let (names, truncated) = first_names(&mut dir, limit)?;
        let mut entries = Vec::new();
        for name in names {
            let (kind, size_bytes) = match self.look(&dir, &name) {
                Ok(seen) => seen,
                // Removed since its name was read.
                Err(FsError::NotFound) => continue,
                Err(FsError::OtherDevice) => (Kind::Other, 0),
                Err(error) => return Err(error),
            };
            entries.push(Entry { name, kind, size_bytes });
        }
        Ok(Listing { entries, truncated })
    }

    fn look(&self, dir: &Dir, name: &[u8]) -> Result<(Kind, u64), FsError> {
        let node = self.name(dir.fd()?, name)?.node;
        let kind = node.kind(self.device());
        Ok((kind, if kind == Kind::File { node.size_bytes } else { 0 }))
    }
}

/// The first `limit` names in order, and whether there are more.
fn first_names(dir: &mut Dir, limit: usize) -> Result<(Vec<Vec<u8>>, bool), FsError> {
    let mut first = BinaryHeap::new();
    let mut truncated = false;
    let mut scanned = 0_usize;
    for entry in dir {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        scanned += 1;
        if scanned > SCAN_MAX {
            return Err(FsError::TooLarge);
        }
        if is_temp(name) {
            continue;
        }
        first.push(name.to_vec());
        if first.len() > limit {
            first.pop();
            truncated = true;
        }
    }
    Ok((first.into_sorted_vec(), truncated))
}
