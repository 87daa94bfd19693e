//! A run's baseline: kept in the home until the run has listed its changes.
//!
//! `HOME/runs/NUMBER` is text: the head of [`syscap::boundary::runs`], then a line for each file.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use syscap::audit::disk;
use syscap::boundary::runs::{self, RunHead, escaped, plain};
use syscap::format::{AgentId, Seq};

use super::survey::{Change, Noted, Survey};
use crate::exit::Failure;

/// Most bytes that are read of one: 10,000 lines of the longest paths.
const BYTES_MAX: u64 = 256 << 20;

/// A run's baseline.
#[derive(Debug)]
pub(crate) struct Baseline {
    /// The run: its session's record.
    pub(super) number: Seq,
    pub(super) head: RunHead,
    before: Survey,
}

impl Baseline {
    /// Notes a workspace, and which places the run may write, the workspace first; keeps that in the
    /// home.
    pub(crate) fn begin(
        home: &Path,
        number: Seq,
        agent: &AgentId,
        writable: Vec<PathBuf>,
    ) -> Result<Self, Failure> {
        let workspace = writable.first().cloned().unwrap_or_default();
        let before = look(&workspace).map_err(Failure::file(&workspace))?;
        let (agent, complete) = (agent.clone(), before.complete);
        let head = RunHead { agent, workspace, complete, writable };
        let baseline = Self { number, head, before };
        let path = path(home, number);
        let folder = path.parent().unwrap_or(home);
        disk::make_folder(folder).map_err(Failure::file(folder))?;
        disk::write_new(&path, baseline.text().as_bytes()).map_err(Failure::file(&path))?;
        Ok(baseline)
    }

    /// All that lie in a home, the oldest run first. One that can't be read hides no other.
    pub(super) fn all(home: &Path) -> Result<Vec<Result<Self, Failure>>, Failure> {
        let numbers = runs::numbers(home)?;
        Ok(numbers.into_iter().map(|number| Self::read(home, Seq::new(number))).collect())
    }

    /// The paths that appeared or changed since, escaped; true if all was looked at, then and now.
    pub(super) fn changes(&self) -> io::Result<(Vec<(String, Change)>, bool)> {
        let now = look(&self.head.workspace)?;
        let changed = now.since(&self.before);
        let changes = changed.map(|(path, change)| (escaped(path), change)).collect();
        Ok((changes, self.before.complete && now.complete))
    }

    /// The workspace's path, escaped.
    pub(super) fn shown_workspace(&self) -> String {
        escaped(self.head.workspace.as_os_str().as_bytes())
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
        let mut text = self.head.text();
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
        let mut lines = text.strip_suffix('\n')?.split('\n').peekable();
        let head = RunHead::take(&mut lines)?;
        let mut before = Survey { complete: head.complete, ..Survey::default() };
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
        Some(Self { number, head, before })
    }
}

fn path(home: &Path, number: Seq) -> PathBuf {
    runs::folder(home).join(number.to_string())
}

fn look(workspace: &Path) -> io::Result<Survey> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Survey::of(openat(CWD, workspace, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let writable = vec![workspace.clone(), PathBuf::from("/tmp/x")];
        let head = RunHead { agent, workspace, complete: true, writable };
        let baseline = Baseline { number, head, before };
        let text = baseline.text();
        let read = Baseline::parse(number, &text).unwrap();
        assert_eq!((read.text(), &read.before), (text.clone(), &baseline.before));
        assert_eq!(read.head, baseline.head);
        for end in 0..text.len() - 1 {
            assert!(
                !text.is_char_boundary(end)
                    || text.as_bytes()[end - usize::from(end > 0)] == b'\n'
                    || Baseline::parse(number, &text[..end]).is_none()
            );
        }
    }
}
