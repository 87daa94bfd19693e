//! A run's baseline: kept in the home until the run has listed its changes.
//!
//! `HOME/runs/NUMBER` is text, a value a line: the format, the agent, the workspace, whether all of
//! it was looked at, then a line for each file. Paths are escaped, so that each is one word.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use syscap::audit::disk;
use syscap::format::{AgentId, Seq};

use super::survey::{Change, Noted, Survey};
use crate::exit::Failure;

const FORMAT: &str = "syscap-run 1";
/// Most bytes that are read of one: 10,000 lines of the longest paths.
const BYTES_MAX: u64 = 256 << 20;

/// A run's baseline.
#[derive(Debug)]
pub(crate) struct Baseline {
    /// The run: its session's record.
    pub(super) number: Seq,
    pub(super) agent: AgentId,
    pub(super) workspace: PathBuf,
    before: Survey,
}

impl Baseline {
    /// Notes a workspace, and keeps that in the home.
    pub(crate) fn begin(
        home: &Path,
        number: Seq,
        agent: &AgentId,
        workspace: &Path,
    ) -> Result<Self, Failure> {
        let before = look(workspace).map_err(Failure::file(workspace))?;
        let agent = agent.clone();
        let baseline = Self { number, agent, workspace: workspace.to_path_buf(), before };
        let path = path(home, number);
        let folder = path.parent().unwrap_or(home);
        disk::make_folder(folder).map_err(Failure::file(folder))?;
        disk::write_new(&path, baseline.text().as_bytes()).map_err(Failure::file(&path))?;
        Ok(baseline)
    }

    /// All that lie in a home, the oldest run first. One that can't be read hides no other.
    pub(super) fn all(home: &Path) -> Result<Vec<Result<Self, Failure>>, Failure> {
        let folder = folder(home);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Failure::file(&folder)(error)),
        };
        let mut numbers: Vec<u64> = Vec::new();
        for entry in entries {
            let name = entry.map_err(Failure::file(&folder))?.file_name();
            // Parts of files that were not finished have other names.
            numbers.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers.into_iter().map(|number| Self::read(home, Seq::new(number))).collect())
    }

    /// The paths that appeared or changed since, escaped; true if all was looked at, then and now.
    pub(super) fn changes(&self) -> io::Result<(Vec<(String, Change)>, bool)> {
        let now = look(&self.workspace)?;
        let changed = now.since(&self.before);
        let changes = changed.map(|(path, change)| (escaped(path), change)).collect();
        Ok((changes, self.before.complete && now.complete))
    }

    /// The workspace's path, escaped.
    pub(super) fn shown_workspace(&self) -> String {
        escaped(self.workspace.as_os_str().as_bytes())
    }

    /// Removes it from the home.
    pub(super) fn forget(&self, home: &Path) -> Result<(), Failure> {
        let path = path(home, self.number);
        fs::remove_file(&path).map_err(Failure::file(&path))
    }

    fn read(home: &Path, number: Seq) -> Result<Self, Failure> {
        let path = path(home, number);
        let read = || {
            let mut text = String::new();
            File::open(&path)?.take(BYTES_MAX).read_to_string(&mut text)?;
            let bad = || io::Error::new(io::ErrorKind::InvalidData, "not a run's notes");
            Self::parse(number, &text).ok_or_else(bad)
        };
        read().map_err(Failure::file(&path))
    }

    fn text(&self) -> String {
        let workspace = self.shown_workspace();
        let complete = self.before.complete;
        let mut text = format!("{FORMAT}\n{}\n{workspace}\n{complete}\n", self.agent);
        for (path, noted) in &self.before.files {
            let (kind, value) = match noted {
                Noted::File { executable: false, digest } => ("file", digest.clone()),
                Noted::File { executable: true, digest } => ("program", digest.clone()),
                Noted::Link(to) => ("link", escaped(to)),
                Noted::Unread => ("unread", "-".to_owned()),
            };
            text.push_str(&format!("{kind} {value} {}\n", escaped(path)));
        }
        text
    }

    fn parse(number: Seq, text: &str) -> Option<Self> {
        // The last line ends, too: one that is cut off is not whole.
        let mut lines = text.strip_suffix('\n')?.split('\n');
        lines.next().filter(|line| *line == FORMAT)?;
        let agent = AgentId::new(lines.next()?)?;
        let workspace = PathBuf::from(OsStr::from_bytes(&plain(lines.next()?)?));
        let complete = lines.next()?.parse().ok()?;
        let mut before = Survey { complete, ..Survey::default() };
        for line in lines {
            let mut words = line.split(' ');
            let (kind, value, path) = (words.next()?, words.next()?, words.next()?);
            let noted = match kind {
                "file" | "program" => {
                    Noted::File { executable: kind == "program", digest: value.to_owned() }
                }
                "link" => Noted::Link(plain(value)?),
                "unread" => Noted::Unread,
                _ => return None,
            };
            before.files.insert(plain(path)?, noted);
        }
        Some(Self { number, agent, workspace, before })
    }
}

fn folder(home: &Path) -> PathBuf {
    home.join("runs")
}

fn path(home: &Path, number: Seq) -> PathBuf {
    folder(home).join(number.to_string())
}

fn look(workspace: &Path) -> io::Result<Survey> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Survey::of(openat(CWD, workspace, flags, Mode::empty())?)
}

/// Bytes as one word of printable ASCII: what is not stands as `\xNN`.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' | 0..=b' ' | 0x7f.. => text.push_str(&format!("\\x{byte:02x}")),
            _ => text.push(char::from(*byte)),
        }
    }
    text
}

/// The bytes of an escaped word.
fn plain(word: &str) -> Option<Vec<u8>> {
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
    fn notes_read_back() {
        let number = Seq::new(7);
        let agent = AgentId::new("coder").unwrap();
        let files = [
            (b"a b\n".to_vec(), Noted::File { executable: true, digest: "aa".to_owned() }),
            (b".mcp.json".to_vec(), Noted::File { executable: false, digest: "bb".to_owned() }),
            (b"\xff".to_vec(), Noted::Link(b"../x y".to_vec())),
            (b"pipe".to_vec(), Noted::Unread),
        ];
        let before = Survey { files: files.into(), complete: true };
        let workspace = PathBuf::from("/project/of mine");
        let baseline = Baseline { number, agent, workspace, before };
        let text = baseline.text();
        let read = Baseline::parse(number, &text).unwrap();
        assert_eq!((read.text(), &read.before), (text.clone(), &baseline.before));
        for end in 0..text.len() - 1 {
            assert!(
                !text.is_char_boundary(end)
                    || text.as_bytes()[end - usize::from(end > 0)] == b'\n'
                    || Baseline::parse(number, &text[..end]).is_none()
            );
        }
    }
}
