//! The uses of a run's client, between its hook and its gateways.
//!
//! Inside a run the hook passes the tools of the run's own gateways without a decision: the gateway
//! decides. Each passed use is held against the call that a gateway gets. The hook and the gateways
//! are processes of their own, so they share a folder of the run, which the agent can't reach.
//!
//! | file | by | content |
//! |---|---|---|
//! | `offered-RUN` | a gateway | the names that its client is shown, one a line; gone with the gateway |
//! | `called-KEY` | a gateway | nothing: the call arrived |
//! | `passed-KEY` | the hook | nothing: the use was passed, and its report is awaited |
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

    /// Notes that a use is passed. `id` is the client's name for it; `shown` names the tool where
    /// the client has none.
    ///
    /// # Errors
    /// As the file has it: then it must not be passed.
    pub fn pass(&self, id: Option<&str>, shown: &str) -> io::Result<()> {
        fs::write(self.file("passed", id.unwrap_or(shown)), b"")
    }

    /// Takes a use out, when its client reports it.
    ///
    /// # Errors
    /// As the files have it.
    pub fn take(&self, id: Option<&str>, shown: &str) -> io::Result<Held> {
        let key = id.unwrap_or(shown);
        let called = was_there(fs::remove_file(self.file("called", key)))?;
        let passed = was_there(fs::remove_file(self.file("passed", key)))?;
        // A call by the name of a use that was judged says nothing of that use: any program of the agent
        // can make one.
        Ok(match (passed, called) {
            (true, true) => Held::Called,
            (true, false) => Held::Missed,
            (false, _) => Held::NotPassed,
        })
    }

    /// Notes what became of a use that no gateway got, for the operator.
    ///
    /// # Errors
    /// As the file has it.
    pub fn miss(&self, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(self.0.join("missed"))?;
        file.write_all(format!("{line}\n").as_bytes())
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

    /// Notes a call that has arrived.
    pub(crate) fn call(&self, id: Option<&str>, shown: &str) -> io::Result<()> {
        fs::write(self.file("called", id.unwrap_or(shown)), b"")
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
        assert_eq!(uses.take(Some("../c"), "x").unwrap(), Held::Called);
        assert_eq!(uses.take(Some("../c"), "x").unwrap(), Held::NotPassed, "it is told of once");
        // A client without names for its uses.
        uses.pass(None, "x").unwrap();
        uses.call(None, "x").unwrap();
        assert_eq!(uses.take(None, "x").unwrap(), Held::Called);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
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
