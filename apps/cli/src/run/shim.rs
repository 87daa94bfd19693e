//! A script that starts a program which lies elsewhere, as those of pyenv and asdf do: within a run
//! it fails, since nothing of that is opened, and its `HOME` is another.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::output::word_of;

/// The codes by which a shell says that it could not start what it was to.
const NOT_STARTED: [u8; 2] = [126, 127];

/// The advice on a run that ended with this code, if its program is a script at that path and no
/// path beside it is opened.
pub(super) fn advice(program: &Path, code: u8) -> Option<String> {
    if !NOT_STARTED.contains(&code) || !is_script(program) {
        return None;
    }
    let (program, folder) = (word_of(program), word_of(&beside(program)?));
    Some(format!(
        "{program} is a script, and nothing beside it is opened to the run, whose HOME is a folder \
         of its own: open what it starts, as with --exec {folder}, and say where that is by --env \
         NAME where it goes by a variable; or name the program itself by its path"
    ))
}

/// The folder that it belongs to: of shims the one above.
fn beside(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?;
    let shims = folder.file_name().is_some_and(|name| name == "shims");
    let above = folder.parent().filter(|above| shims && above.parent().is_some());
    Some(above.unwrap_or(folder).to_path_buf())
}

fn is_script(program: &Path) -> bool {
    let mut first = [0; 2];
    File::open(program).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == *b"#!"
}
