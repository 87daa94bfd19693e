//! A server's tools as it lists them: read, kept within bounds, and good until it says that they
//! are others now.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::PoisonError,
    time::Duration,
};

use syscap::format::id::DefinitionHash;
use tokio::time::sleep;

use crate::{
    hub::Hub,
    lists::{self, Listed, Whole},
    manifest::Definition,
    names,
    say::say,
    server::Server,
    upstream::{Link, Trouble},
};

/// How long a server may take to list its tools.
const LIST_MAX: Duration = Duration::from_secs(30);
/// Most lines that are said of one list.
const SAID_MAX: usize = 16;
/// Most tools of a server at once.
const TOOLS_MAX: usize = 256;
/// Most tools of all servers together: as many as a process may offer. Each has its share, so
/// that none is in another's way.
const TOOLS_IN_ALL_MAX: usize = 512;
/// Most text of a server's manifests, in bytes.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// Most names of all servers' tools in one run of the gateway, as many as a process may have put
/// on record: there they stay.
const NAMES_MAX: usize = 512;

/// The tools of one connection. A new connection has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    /// How often the server had said, before it was asked, that they changed.
    pub(crate) changes: u64,
    /// What it listed. `None` where it was not asked, or did not say.
    pub(crate) definitions: Option<Vec<Definition>>,
}

impl Listing {
    /// The name of the tool of that definition.
    pub(crate) fn name(&self, definition: DefinitionHash) -> Option<String> {
        let mut all = self.definitions.iter().flatten();
        all.find(|listed| listed.hash == definition).map(|listed| listed.name().to_owned())
    }
}

/// Lists a server's tools. Where that fails it has none.
pub(crate) async fn list(hub: &Hub, server: &Server, link: &Link) -> Result<(), Trouble> {
    let changes = link.changes();
    let read = match &link.capabilities.tools {
        Some(_) => ask(hub, link).await.map(|whole| read(server, &whole)),
        None => Ok(Vec::new()),
    };
    let (definitions, listed) = match read {
        Ok(definitions) => (Some(definitions), Ok(())),
        Err(trouble) => {
            say(&format!("server {}: tools/list: {trouble}", server.name));
            (None, Err(trouble))
        }
    };
    link.set_listing(Listing { changes, definitions });
    listed
}

async fn ask(hub: &Hub, link: &Link) -> Result<Whole, Trouble> {
    let cancel = hub.closing.child_token();
    let whole = lists::all(link, Listed::Tools, None, &cancel);
    tokio::pin!(whole);
    tokio::select! {
        whole = &mut whole => return whole,
        () = sleep(LIST_MAX) => cancel.cancel(),
    }
    whole.await
}

/// The tools of a list that can be offered.
fn read(server: &Server, whole: &Whole) -> Vec<Definition> {
    let mut definitions: BTreeMap<String, Definition> = BTreeMap::new();
    let (mut wrong, mut twice) = (Vec::new(), BTreeSet::new());
    for value in &whole.entries {
        match Definition::read(value) {
            Ok(definition) => {
                let name = definition.name().to_owned();
                if definitions.insert(name.clone(), definition).is_some() {
                    twice.insert(name);
                }
            }
            Err(unfit) => {
                let name = value.get("name").and_then(|name| name.as_str()).unwrap_or("?");
                let name: String = name.chars().take(names::NAME_BYTES_MAX).collect();
                wrong.push(format!("{name:?} is not offered: {unfit}"));
            }
        }
    }
    // Of two of one name neither can be told from the other.
    definitions.retain(|name, _| !twice.contains(name));
    wrong.extend(twice.iter().map(|name| format!("two tools are called {name:?}")));
    let mut bounds = server.bounds.lock().unwrap_or_else(PoisonError::into_inner);
    if whole.cut {
        bounds.passed(TooMuch::Tools);
    }
    let definitions = bounds.admit(definitions);
    let news = bounds.news();
    drop(bounds);
    wrong.truncate(SAID_MAX);
    wrong.extend(news.iter().map(ToString::to_string));
    for wrong in wrong {
        say(&format!("server {}: {wrong}", server.name));
    }
    definitions
}

/// Of what a server lists more than is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
enum TooMuch {
    #[error("it has more tools than are taken; the rest is not offered")]
    Tools,
    #[error("its tools are described in more than {TEXT_BYTES_MAX} bytes; the rest is not offered")]
    Text,
    #[error("it has named too many tools in all; no new one is offered any more")]
    Names,
}

/// What has been taken of a server, in one run of the gateway.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// Most tools at once.
    tools: usize,
    /// Most names in all.
    most: usize,
    names: BTreeSet<String>,
    /// What was passed, and whether that has been said.
    passed: BTreeMap<TooMuch, bool>,
}

impl Bounds {
    /// For one of so many servers.
    pub(crate) fn new(servers: usize) -> Self {
        let share = |all: usize| all.checked_div(servers).unwrap_or(all);
        let (tools, most) = (share(TOOLS_IN_ALL_MAX).min(TOOLS_MAX), share(NAMES_MAX));
        Self { tools, most, names: BTreeSet::new(), passed: BTreeMap::new() }
    }

    /// What is taken of a list: what was taken before goes first.
    fn admit(&mut self, definitions: BTreeMap<String, Definition>) -> Vec<Definition> {
        let (mut taken, mut text) = (Vec::new(), 0_usize);
        let (known, new): (Vec<_>, Vec<_>) =
            definitions.into_iter().partition(|(name, _)| self.names.contains(name));
        for (name, definition) in known.into_iter().chain(new) {
            let with = text.saturating_add(definition.text_bytes());
            let over = if taken.len() >= self.tools {
                Some(TooMuch::Tools)
            } else if with > TEXT_BYTES_MAX {
                Some(TooMuch::Text)
            } else if self.names.len() >= self.most && !self.names.contains(&name) {
                Some(TooMuch::Names)
            } else {
                None
            };
            if let Some(over) = over {
                self.passed(over);
                continue;
            }
            text = with;
            self.names.insert(name);
            taken.push(definition);
        }
        taken.sort_by(|a, b| a.name().cmp(b.name()));
        taken
    }

    fn passed(&mut self, over: TooMuch) {
        self.passed.entry(over).or_insert(false);
    }

    /// What has been passed and was not said yet.
    fn news(&mut self) -> Vec<TooMuch> {
        let unsaid = self.passed.iter_mut().filter(|(_, said)| !**said);
        let news = unsaid.map(|(over, said)| {
            *said = true;
            *over
        });
        news.collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools(
        names: impl Iterator<Item = String>,
        description: &str,
    ) -> BTreeMap<String, Definition> {
        let read = |name: String| {
            let tool = json!({"name": name, "description": description, "inputSchema": {}});
            (name, Definition::read(&tool).unwrap())
        };
        names.map(read).collect()
    }

    #[test]
    fn a_server_has_so_many_tools() {
        let mut bounds = Bounds::new(1);
        let later = tools((0..TOOLS_MAX).map(|n| format!("t{n}")), "");
        assert_eq!(bounds.admit(later.clone()).len(), TOOLS_MAX);
        assert_eq!(bounds.news(), []);
        // Newcomers take nobody's place, wherever their names stand.
        let mut more = tools((0..9).map(|n| format!("a{n}")), "");
        more.extend(later);
        let taken = bounds.admit(more.clone());
        assert_eq!(taken.len(), TOOLS_MAX);
        assert!(taken.iter().all(|tool| tool.name().starts_with('t')));
        assert_eq!(bounds.news(), [TooMuch::Tools]);
        let taken = Bounds::new(4).admit(more.clone());
        assert_eq!(taken.len(), TOOLS_IN_ALL_MAX / 4);
        bounds.admit(more);
        assert_eq!(bounds.news(), []);
    }

    #[test]
    fn a_server_has_so_much_text() {
        let mut bounds = Bounds::new(1);
        let taken = bounds.admit(tools((0..200).map(|n| format!("t{n}")), &"d".repeat(4_000)));
        let text: usize = taken.iter().map(Definition::text_bytes).sum();
        assert!(text <= TEXT_BYTES_MAX && text > TEXT_BYTES_MAX - 4_000, "{text}");
        assert_eq!(bounds.news(), [TooMuch::Text]);
    }

    #[test]
    fn a_server_names_so_many_tools_in_all() {
        let mut bounds = Bounds::new(1);
        let mut taken = 0;
        for round in 0..20 {
            taken += bounds.admit(tools((0..100).map(|n| format!("t{round}_{n}")), "")).len();
        }
        assert_eq!(taken, NAMES_MAX);
        assert_eq!(bounds.news(), [TooMuch::Names]);
        assert_eq!(bounds.admit(tools((0..100).map(|n| format!("t0_{n}")), "")).len(), 100);
    }
}
