//! The homes that a server could see.

use std::collections::VecDeque;
use std::io::ErrorKind::{NotFound, PermissionDenied};
use std::path::{Path, PathBuf};
use std::{fs, io};

use syscap::Home;
use syscap::boundary::Place;

/// The file by which a home is known.
const DATABASE: &str = "home.db";
/// How deep below a word it is looked for homes.
const DEPTH_MAX: usize = 4;
/// Most names below the words of one command that are looked at.
const NAMES_MAX: usize = 10_000;

/// The gateway's home, those in and below these folders, and the keys of each where they lie
/// elsewhere.
pub(super) fn of<'p>(
    home: &Path,
    folders: impl Iterator<Item = &'p Place>,
) -> io::Result<Vec<Place>> {
    let mut homes = Vec::new();
    add(&mut homes, home)?;
    let mut names = 0_usize;
    let mut waiting: VecDeque<(PathBuf, usize)> = VecDeque::new();
    for folder in folders {
        waiting.push_back((folder.real()?, 0));
    }
    while let Some((folder, depth)) = waiting.pop_front() {
        if fs::symlink_metadata(folder.join(DATABASE)).is_ok() {
            match add(&mut homes, &folder) {
                // One that may not be looked at, or is gone, is no loss: the server sees none either.
                Err(error) if ![PermissionDenied, NotFound].contains(&error.kind()) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            names = names.saturating_add(1);
            if names > NAMES_MAX {
                return Ok(homes);
            }
            if depth < DEPTH_MAX && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push_back((entry.path(), depth.saturating_add(1)));
            }
        }
    }
    Ok(homes)
}

/// Adds a home, and its keys where they lie elsewhere. One that lies in the files of another is added
/// besides: those stay in view.
fn add(homes: &mut Vec<Place>, home: &Path) -> io::Result<()> {
    let own = Place::open(home)?;
    let is_known = homes.iter().any(|known| known.contains(&own) && own.contains(known));
    if is_known {
        return Ok(());
    }
    let keys = match Place::open(&Home::at(home).keys()) {
        Ok(keys) => Some(keys).filter(|keys| !own.contains(keys)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    homes.push(own);
    homes.extend(keys);
    Ok(())
}
