//! The uses of a run's client, between its hook and its gateways.
//!
//! Inside a run the hook passes the tools of the run's own gateways without a decision: the gateway
//! decides. Each passed use is held against the call that a gateway gets. The hook and the gateways
//! are processes of their own, so they share a folder of the run, which the agent can't reach.
//!
//! | file | by | content |
//! |---|---|---|
//! | `offered-RUN` | a gateway | the names that its client is shown, one a line; gone with the gateway |
//! | `passed-KEY` | the hook | the tool's name as it is shown: the use was passed, its call is awaited |
//! | `called-KEY` | a gateway | the same file: the call arrived, its report is awaited |
//! | `missed` | the hook | a line for each use that was passed and that no gateway got |

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;

use rmcp::model::{JsonObject, RequestMetaObject};
use serde_json::Value;
use syscap::format::object_id;

/// The name of a use in the metadata of a call (`_meta`), as Claude Code sends it.
const CLIENTS_ID: &str = "claudecode/toolUseId";

/// Most uses that wait for their report. Programs of the agent can speak to the hook, too.
const WAITING_MAX: usize = 1_024;
/// Longest list of missed uses, in bytes, but for its last line.
const MISSED_BYTES_MAX: u64 = 64 << 10;

/// The folder of a run in which its uses are kept.
#[derive(Clone, Debug)]
pub struct Uses(PathBuf);

/// The state of a use, when its client reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// A gateway got its call.
    Called,
    /// It was passed, and no gateway got its call.
    Missed,
    /// It was not passed.
    NotPassed,
}

impl Uses {
    /// The uses in that folder.
    #[must_use]
    pub const fn at(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// The names that the gateways' clients are shown.
    ///
    /// # Errors
    /// As the files have it.
    pub fn offered(&self) -> io::Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(|name| name.starts_with("offered-")) {
                // A gateway may have ended just now.
                let text = match fs::read_to_string(entry.path()) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    text => text?,
                };
                names.extend(text.lines().map(str::to_owned));
            }
        }
        Ok(names)
    }

    /// Notes that a use is passed. `id` is the client's name for it; `shown` names the tool, and the
    /// use where the client has no name for it. False where as many wait for their report as may:
    /// then it must not be passed.
    ///
    /// # Errors
    /// As the file has it: then it must not be passed either.
    pub fn pass(&self, id: Option<&str>, shown: &str) -> io::Result<bool> {
        let fits = fs::read_dir(&self.0)?.take(WAITING_MAX).count() < WAITING_MAX;
        if fits {
            fs::write(self.file("passed", id.unwrap_or(shown)), shown)?;
        }
        Ok(fits)
    }

    /// Takes a use out, when its client reports it.
    ///
    /// # Errors
    /// As the files have it.
    pub fn take(&self, id: Option<&str>, shown: &str) -> io::Result<Held> {
        let key = id.unwrap_or(shown);
        if was_there(fs::remove_file(self.file("called", key)))? {
            return Ok(Held::Called);
        }
        Ok(match was_there(fs::remove_file(self.file("passed", key)))? {
            true => Held::Missed,
            false => Held::NotPassed,
        })
    }

    /// Notes what became of a use that no gateway got, for the operator. A list that is long enough
    /// takes no more: the log has them all.
    ///
    /// # Errors
    /// As the file has it.
    pub fn miss(&self, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(self.0.join("missed"))?;
        match file.metadata()?.len() {
            MISSED_BYTES_MAX.. => Ok(()),
            _ => file.write_all(format!("{line}\n").as_bytes()),
        }
    }

    /// The notes of [`Uses::miss`].
    ///
    /// # Errors
    /// As the file has it.
    pub fn missed(&self) -> io::Result<String> {
        match fs::read_to_string(self.0.join("missed")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read,
        }
    }

    /// Notes a call of that tool that has arrived, where it is that of a use that was passed. Any
    /// program of the agent can make others.
    pub(crate) fn call(&self, id: Option<&str>, shown: &str) -> io::Result<()> {
        let key = id.unwrap_or(shown);
        let passed = self.file("passed", key);
        match fs::read_to_string(&passed) {
            Ok(tool) if tool == shown => {
                was_there(fs::rename(passed, self.file("called", key))).map(drop)
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Notes the names that the client of the gateway of that run is shown. A reader finds those
    /// before, or these.
    pub(crate) fn offer<'n>(
        &self,
        run: &str,
        names: impl Iterator<Item = &'n str>,
    ) -> io::Result<()> {
        let text: String = names.flat_map(|name| [name, "\n"]).collect();
        let whole = self.0.join(format!("new-{run}"));
        fs::write(&whole, text)?;
        fs::rename(whole, self.0.join(format!("offered-{run}")))
    }

    /// Takes these names back.
    pub(crate) fn withdraw(&self, run: &str) -> io::Result<()> {
        was_there(fs::remove_file(self.0.join(format!("offered-{run}")))).map(drop)
    }

    /// A name that a client chose is no part of a path.
    fn file(&self, what: &str, key: &str) -> PathBuf {
        self.0.join(format!("{what}-{}", object_id(key.as_bytes())))
    }
}

/// The client's name for the use of a tool that a call is made for.
pub(crate) fn id_of(meta: &RequestMetaObject) -> Option<&str> {
    let map: &JsonObject = meta;
    map.get(CLIENTS_ID).and_then(Value::as_str)
}

fn was_there(removed: io::Result<()>) -> io::Result<bool> {
    match removed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_is_held_against_its_own_call() {
        let folder = host_support::scratch();
        let uses = Uses::at(folder.path().to_path_buf());
        uses.pass(Some("a"), "x").unwrap();
        uses.call(Some("b"), "x").unwrap();
        assert_eq!(uses.take(Some("a"), "x").unwrap(), Held::Missed);
        assert_eq!(uses.take(Some("b"), "x").unwrap(), Held::NotPassed, "judged, and not passed");
        uses.pass(Some("../c"), "x").unwrap();
        uses.call(Some("../c"), "y").unwrap();
        assert_eq!(uses.take(Some("../c"), "x").unwrap(), Held::Missed, "another tool's call");
        uses.pass(Some("../c"), "x").unwrap();
        uses.call(Some("../c"), "x").unwrap();
        assert_eq!(uses.take(Some("../c"), "x").unwrap(), Held::Called);
        assert_eq!(uses.take(Some("../c"), "x").unwrap(), Held::NotPassed, "it is told of once");
        // A client without names for its uses.
        uses.pass(None, "x").unwrap();
        uses.call(None, "x").unwrap();
        assert_eq!(uses.take(None, "x").unwrap(), Held::Called);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// Programs of the agent can tell the hook of uses without end, and make calls without end.
    #[test]
    fn uses_that_wait_are_bounded() {
        let folder = host_support::scratch();
        let uses = Uses::at(folder.path().to_path_buf());
        let passed = |n: &usize| uses.pass(Some(&n.to_string()), "x").unwrap();
        assert_eq!((0..WAITING_MAX + 9).filter(passed).count(), WAITING_MAX);
        (0..WAITING_MAX).for_each(|n| uses.call(Some(&format!("other {n}")), "x").unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), WAITING_MAX);
        assert_eq!(uses.take(Some("0"), "x").unwrap(), Held::Missed);
        assert!(passed(&0));
        let line = "m".repeat(1_000);
        (0..99).for_each(|_| uses.miss(&line).unwrap());
        assert_eq!(uses.missed().unwrap().lines().count(), 66);
    }

    /// The list of each gateway is the last one: a tool that is renamed has its new name alone.
    #[test]
    fn offered_names_are_those_of_now() {
        let folder = host_support::scratch();
        let uses = Uses::at(folder.path().to_path_buf());
        let offered = || uses.offered().unwrap().into_iter().collect::<Vec<_>>();
        let many: Vec<String> = (0..300).map(|n| format!("tool_{n:03}")).collect();
        uses.offer("1", many.iter().map(String::as_str)).unwrap();
        assert_eq!(offered(), many);
        uses.offer("1", ["old"].into_iter()).unwrap();
        uses.offer("2", ["other"].into_iter()).unwrap();
        assert_eq!(offered(), ["old", "other"]);
        uses.offer("1", ["new"].into_iter()).unwrap();
        uses.withdraw("2").unwrap();
        uses.withdraw("2").unwrap();
        assert_eq!(offered(), ["new"]);
    }
}
