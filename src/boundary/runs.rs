//! The notes of runs in the home: `HOME/runs/NUMBER` is text, a value a line.
//!
//! The head is the format, the agent, the workspace, whether all of it was looked at and, from
//! version 2 on, each place that the run may write, the workspace first. A line for each file
//! follows. Paths are escaped, so that each is one word.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use syscap_format::AgentId;

use super::BoundaryError;

const FORMATS: [&str; 2] = ["syscap-run 1", "syscap-run 2"];
/// Before each place that a run may write.
const WRITABLE: &str = "writable ";
/// Most bytes of a head: some thousand of the longest paths.
const HEAD_BYTES_MAX: u64 = 16 << 20;

/// The head of a run's notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunHead {
    /// The agent.
    pub agent: AgentId,
    /// The folder that it works in.
    pub workspace: PathBuf,
    /// True if all of the workspace was looked at.
    pub complete: bool,
    /// Each place that the run may write, the workspace too.
    pub writable: Vec<PathBuf>,
}

impl RunHead {
    /// Its lines, as the present version has them.
    #[must_use]
    pub fn text(&self) -> String {
        let [_, format] = FORMATS;
        let workspace = escaped(self.workspace.as_os_str().as_bytes());
        let mut text = format!("{format}\n{}\n{workspace}\n{}\n", self.agent, self.complete);
        for place in &self.writable {
            text.push_str(&format!("{WRITABLE}{}\n", escaped(place.as_os_str().as_bytes())));
        }
        text
    }

    /// Reads it, and takes its lines away from the rest; `None` where it is no such head.
    pub fn take<'l>(
        lines: &mut std::iter::Peekable<impl Iterator<Item = &'l str>>,
    ) -> Option<Self> {
        let [first, _] = FORMATS;
        let format = lines.next().filter(|line| FORMATS.contains(line))?;
        let agent = AgentId::new(lines.next()?)?;
        let path = |word| Some(PathBuf::from(OsStr::from_bytes(&plain(word)?)));
        let workspace = path(lines.next()?)?;
        let complete = lines.next()?.parse().ok()?;
        let mut writable = Vec::new();
        while let Some(word) = lines.peek().and_then(|line| line.strip_prefix(WRITABLE)) {
            writable.push(path(word)?);
            lines.next();
        }
        // The first version has none, though its runs had some.
        if format == first {
            writable.push(workspace.clone());
        }
        (!writable.is_empty()).then_some(Self { agent, workspace, complete, writable })
    }
}

/// The folder of a home's notes.
#[must_use]
pub fn folder(home: &Path) -> PathBuf {
    home.join("runs")
}

/// The places that recorded runs of a home may write: those that go on, and those whose changes
/// nobody has forgotten yet (`syscap changes`).
///
/// # Errors
/// [`BoundaryError::File`] where notes can't be read.
pub fn writable(home: &Path) -> Result<Vec<PathBuf>, BoundaryError> {
    let mut all = Vec::new();
    for number in numbers(home)? {
        let path = folder(home).join(number.to_string());
        match head(&path) {
            Ok(head) => all.extend(head.writable),
            // Its run has ended since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(BoundaryError::file(&path)(error)),
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// The file of the places that runs of a home were ever let write, a line each.
const PLACES: &str = "places";
/// Most bytes of it.
const PLACES_BYTES_MAX: u64 = 16 << 20;

/// The places that any run was let write since [`forget`].
///
/// # Errors
/// [`BoundaryError::File`].
pub fn ever_writable(home: &Path) -> Result<Vec<PathBuf>, BoundaryError> {
    let path = folder(home).join(PLACES);
    let mut text = String::new();
    match File::open(&path).and_then(|file| file.take(PLACES_BYTES_MAX).read_to_string(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(BoundaryError::file(&path)(error)),
    }
    let words = text.lines().filter_map(plain);
    let mut places: Vec<PathBuf> =
        words.map(|bytes| PathBuf::from(OsStr::from_bytes(&bytes))).collect();
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

/// Notes such places.
///
/// # Errors
/// [`BoundaryError::File`].
pub fn remember(home: &Path, places: &[PathBuf]) -> Result<(), BoundaryError> {
    let known = ever_writable(home)?;
    let path = folder(home).join(PLACES);
    let lines: String = places
        .iter()
        .filter(|place| !known.contains(place))
        .map(|place| format!("{}\n", escaped(place.as_os_str().as_bytes())))
        .collect();
    // One write, so that two runs that begin at once mix no lines.
    let write = || {
        let mut options = File::options();
        let mut file = options.append(true).create(true).mode(0o600).open(&path)?;
        file.write_all(lines.as_bytes())?;
        file.sync_all()
    };
    write().map_err(BoundaryError::file(&path))
}

/// Forgets all such places.
///
/// # Errors
/// [`BoundaryError::File`].
pub fn forget(home: &Path) -> Result<(), BoundaryError> {
    let path = folder(home).join(PLACES);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(BoundaryError::file(&path)(error))
        }
        _ => Ok(()),
    }
}

/// The numbers of the runs that have notes in a home, the oldest first.
///
/// # Errors
/// [`BoundaryError::File`] where they can't be listed.
pub fn numbers(home: &Path) -> Result<Vec<u64>, BoundaryError> {
    let folder = folder(home);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(BoundaryError::file(&folder)(error)),
    };
    let mut numbers: Vec<u64> = Vec::new();
    for entry in entries {
        let name = entry.map_err(BoundaryError::file(&folder))?.file_name();
        // Parts of files that were not finished have other names.
        numbers.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn head(path: &Path) -> io::Result<RunHead> {
    let mut lines = Vec::new();
    let mut read = BufReader::new(File::open(path)?.take(HEAD_BYTES_MAX));
    let mut line = String::new();
    while lines.len() < 5 || line.starts_with(WRITABLE) {
        line.clear();
        if read.read_line(&mut line)? == 0 {
            break;
        }
        lines.push(line.trim_end_matches('\n').to_owned());
    }
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "not a run's notes");
    RunHead::take(&mut lines.iter().map(String::as_str).peekable()).ok_or_else(bad)
}

/// Bytes as one word of printable ASCII: what is not stands as `\xNN`.
#[must_use]
pub fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' | 0..=b' ' | 0x7f.. => text.push_str(&format!("\\x{byte:02x}")),
            _ => text.push(char::from(*byte)),
        }
    }
    text
}

/// The bytes of an escaped word; `None` where it is none.
#[must_use]
pub fn plain(word: &str) -> Option<Vec<u8>> {
    let mut parts = word.split("\\x");
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.as_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_bytes_read_back_and_hold_no_control() {
        let all: Vec<u8> = (0..=255).collect();
        let word = escaped(&all);
        assert!(word.bytes().all(|byte| byte.is_ascii_graphic()));
        assert_eq!(plain(&word), Some(all));
        assert_eq!(plain("\\x0"), None);
        assert_eq!(plain("\\xzz"), None);
    }

    #[test]
    fn places_of_both_versions_are_read() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(writable(home.path()).unwrap(), Vec::<PathBuf>::new());
        fs::create_dir(folder(home.path())).unwrap();
        let first = "syscap-run 1\ncoder\n/w\\x20s\ntrue\nunread - pipe\n";
        fs::write(folder(home.path()).join("7"), first).unwrap();
        let head = RunHead {
            agent: AgentId::new("coder").unwrap(),
            workspace: "/b".into(),
            complete: false,
            writable: vec!["/b".into(), "/a\n".into()],
        };
        let second = format!("{}unread - pipe\n", head.text());
        fs::write(folder(home.path()).join("8"), &second).unwrap();
        let all = writable(home.path()).unwrap();
        assert_eq!(all, ["/a\n", "/b", "/w s"].map(PathBuf::from));
        let mut lines = second.lines().peekable();
        assert_eq!(RunHead::take(&mut lines), Some(head));
        assert_eq!(lines.next(), Some("unread - pipe"));
        let places = ["/a\n", "/b"].map(PathBuf::from);
        remember(home.path(), &places).unwrap();
        remember(home.path(), &places[..1]).unwrap();
        assert_eq!(ever_writable(home.path()).unwrap(), places);
        forget(home.path()).unwrap();
        assert_eq!(ever_writable(home.path()).unwrap(), Vec::<PathBuf>::new());
        // Notes of a later version are not passed over.
        fs::write(folder(home.path()).join("9"), "syscap-run 3\n").unwrap();
        assert!(writable(home.path()).is_err());
    }
}
