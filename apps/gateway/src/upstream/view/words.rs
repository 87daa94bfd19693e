//! The paths that a server's command names: by its program, its words, the values of its variables.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use syscap::boundary::{Place, Way};

use crate::options::ServerCommand;

/// Most parts of a word that are looked at.
const PARTS_MAX: usize = 1_024;

/// The written places that a command names anything in, or through. More is taken for a name than is
/// one: a server that is confined without need says so, and one that is not is the agent's.
pub(super) fn named(
    command: &ServerCommand,
    variables: &[(OsString, OsString)],
    folder: &Path,
    written: &[Place],
) -> io::Result<Vec<PathBuf>> {
    let mut named = Vec::new();
    if written.is_empty() {
        return Ok(named);
    }
    let words = command.command.iter().map(OsStr::new);
    let values = variables.iter().filter(|(name, _)| name != "PATH").map(|(_, value)| &**value);
    for text in words.chain(values).chain([folder.as_os_str()]) {
        for place in written {
            let real = place.real()?;
            let is_named = !named.contains(&real)
                && (holds(text.as_bytes(), real.as_os_str().as_bytes())
                    || parts(text).iter().any(|part| leads_into(part, folder, place)));
            if is_named {
                named.push(real);
            }
        }
    }
    Ok(named)
}

/// True if a path leads into a place, or through it. One that can't be followed leads anywhere.
fn leads_into(part: &Path, folder: &Path, place: &Place) -> bool {
    Way::of(part, folder).map_or(true, |way| way.touches(place))
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    part.len() > 1 && text.windows(part.len()).any(|window| window == part)
}

/// The folders that the words are, or name as an option's value.
pub(super) fn folders(command: &ServerCommand, folder: &Path) -> io::Result<Vec<Place>> {
    let mut folders = Vec::new();
    for word in &command.command {
        for part in parts(OsStr::new(word)) {
            if let Ok(place) = Place::open(&folder.join(part))
                && place.is_folder()
            {
                folders.push(place);
            }
        }
    }
    Ok(folders)
}

/// The parts of a word that may be paths: all of it, what stands behind its first `=`, an option's
/// letter or `file://`, and each part between characters that separate words, lists and settings.
fn parts(text: &OsStr) -> Vec<PathBuf> {
    let bytes = text.as_bytes();
    let mut parts: Vec<&[u8]> = vec![bytes];
    if let Some(at) = bytes.iter().position(|byte| *byte == b'=') {
        parts.extend(bytes.get(at.saturating_add(1)..));
    }
    let separates = |byte: &u8| byte.is_ascii_whitespace() || b"=:,;|&()<>[]{}\"'`".contains(byte);
    parts.extend(bytes.split(separates));
    let mut paths = Vec::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()).take(PARTS_MAX) {
        let plain = part.strip_prefix(b"//").map_or(part, |_| part.get(1..).unwrap_or_default());
        paths.push(PathBuf::from(OsStr::from_bytes(plain)));
        match part {
            [b'-', letter, rest @ ..] if *letter != b'-' && !rest.is_empty() => {
                paths.push(PathBuf::from(OsStr::from_bytes(rest)));
            }
            [b'~', b'/', rest @ ..] => {
                let home = env::var_os("HOME").map(PathBuf::from);
                paths.extend(home.map(|home| home.join(OsStr::from_bytes(rest))));
            }
            _ => {}
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_word_names_its_place() {
        let base = env::temp_dir().join(format!("syscap-words-{}", std::process::id()));
        let (place, other) = (base.join("ws"), base.join("other"));
        std::fs::create_dir_all(place.join("lib")).unwrap();
        std::fs::create_dir_all(&other).unwrap();
        std::os::unix::fs::symlink(place.join("lib"), other.join("link")).unwrap();
        let (ws, written) = (place.display().to_string(), [Place::open(&place).unwrap()]);
        let forms = [
            "{ws}",
            "{ws}/new/file",
            "--dir={ws}",
            "-C{ws}/lib",
            "file://{ws}/lib",
            "a:{ws}/lib:b",
            "sh -c 'cd \"{ws}\" && x'",
            "x{ws}y",
            "link/x",
            "../ws/lib",
            "--opt=../ws",
        ];
        let named = |command: ServerCommand, variables: &[(OsString, OsString)]| {
            super::named(&command, variables, &other, &written).unwrap().len()
        };
        for form in forms {
            let word = form.replace("{ws}", &ws);
            let command = vec!["/usr/bin/env".to_owned(), word.clone()];
            assert_eq!(named(ServerCommand::new("s".into(), command), &[]), 1, "{word}");
            let variables = [("X".into(), word.clone().into())];
            let command = ServerCommand::new("s".into(), vec!["/usr/bin/env".to_owned()]);
            assert_eq!(named(command, &variables), 1, "{word}");
        }
        let plain = ["-y", "server", "..", "/usr", "a=b", "file:///etc"].map(str::to_owned);
        assert_eq!(named(ServerCommand::new("s".into(), plain.to_vec()), &[]), 0);
        std::fs::remove_dir_all(base).unwrap();
    }
}
