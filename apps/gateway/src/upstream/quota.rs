//! How much is taken of what a server lists: tools at once, their text, and names in all.

use std::collections::{BTreeMap, BTreeSet};

use crate::governed::manifest::Definition;

/// Most tools of a server at once.
const TOOLS_MAX: usize = 256;
/// Most tools of all servers together: as many as a process may offer, but for prompts and what a
/// server has one of. Each has its share, so that none is in another's way.
const TOOLS_IN_ALL_MAX: usize = 448;
/// Most prompts of all servers together, at once and in one run of the gateway.
const PROMPTS_MAX: usize = 48;
/// Most text of a server's manifests, with the whole definitions, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Most names of all servers' tools in one run of the gateway, as many as a process may have put
/// on record, but for the same: there they stay.
const NAMES_MAX: usize = 448;

/// A server's list beyond its quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub(crate) enum TooMuch {
    #[error("it has more than are taken of one server")]
    Tools,
    #[error("they are described in more than {TEXT_BYTES_MAX} bytes")]
    Text,
    #[error("it has named too many in all, and no new one is taken any more")]
    Names,
}

/// The accepted definitions of a server, in one run of the gateway.
#[derive(Debug)]
pub(crate) struct Quota {
    /// Most tools at once.
    tools: usize,
    /// Most names in all.
    most: usize,
    names: BTreeSet<String>,
    /// The names left out of the last list.
    left: Vec<String>,
    /// The quotas that were passed; true once that was reported.
    passed: BTreeMap<TooMuch, bool>,
}

impl Quota {
    /// For one of so many servers.
    pub(crate) fn new(servers: usize) -> Self {
        let share = |all: usize| all.checked_div(servers).unwrap_or(all);
        let (tools, most) = (share(TOOLS_IN_ALL_MAX).min(TOOLS_MAX), share(NAMES_MAX));
        Self { tools, most, names: BTreeSet::new(), left: Vec::new(), passed: BTreeMap::new() }
    }

    /// For the prompts of one of so many servers.
    pub(crate) fn of_prompts(servers: usize) -> Self {
        let share = PROMPTS_MAX.checked_div(servers).unwrap_or(PROMPTS_MAX).max(1);
        Self { tools: share, most: share, ..Self::new(servers) }
    }

    /// The accepted part of a list: earlier definitions go first.
    pub(crate) fn admit(&mut self, definitions: BTreeMap<String, Definition>) -> Vec<Definition> {
        let (mut taken, mut text) = (Vec::new(), 0_usize);
        self.left.clear();
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
                self.left.push(name);
                continue;
            }
            text = with;
            self.names.insert(name);
            taken.push(definition);
        }
        taken.sort_by(|a, b| a.name().cmp(b.name()));
        taken
    }

    /// The names of what was not taken of the last list.
    pub(crate) fn left(&self) -> &[String] {
        &self.left
    }

    /// Notes what a list has passed.
    pub(crate) fn passed(&mut self, over: TooMuch) {
        self.passed.entry(over).or_insert(false);
    }

    /// The passed quotas that were not reported yet.
    pub(crate) fn news(&mut self) -> Vec<TooMuch> {
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
        let mut quota = Quota::new(1);
        let later = tools((0..TOOLS_MAX).map(|n| format!("t{n}")), "");
        assert_eq!(quota.admit(later.clone()).len(), TOOLS_MAX);
        assert_eq!(quota.news(), []);
        // Newcomers take nobody's place, wherever their names stand.
        let mut more = tools((0..9).map(|n| format!("a{n}")), "");
        more.extend(later);
        let taken = quota.admit(more.clone());
        assert_eq!(taken.len(), TOOLS_MAX);
        assert!(taken.iter().all(|tool| tool.name().starts_with('t')));
        let left: Vec<String> = (0..9).map(|n| format!("a{n}")).collect();
        assert_eq!(quota.left(), left);
        assert_eq!(quota.news(), [TooMuch::Tools]);
        let taken = Quota::new(4).admit(more.clone());
        assert_eq!(taken.len(), TOOLS_IN_ALL_MAX / 4);
        quota.admit(more);
        assert_eq!(quota.news(), []);
    }

    #[test]
    fn a_server_has_so_much_text() {
        let mut quota = Quota::new(1);
        let taken = quota.admit(tools((0..200).map(|n| format!("t{n}")), &"d".repeat(4_000)));
        let text: usize = taken.iter().map(Definition::text_bytes).sum();
        assert!(text <= TEXT_BYTES_MAX && text > TEXT_BYTES_MAX - 8_000, "{text}");
        assert_eq!(quota.news(), [TooMuch::Text]);
    }

    #[test]
    fn a_server_names_so_many_tools_in_all() {
        let mut quota = Quota::new(1);
        let mut taken = 0;
        for round in 0..20 {
            taken += quota.admit(tools((0..100).map(|n| format!("t{round}_{n}")), "")).len();
        }
        assert_eq!(taken, NAMES_MAX);
        assert_eq!(quota.news(), [TooMuch::Names]);
        assert_eq!(quota.admit(tools((0..100).map(|n| format!("t0_{n}")), "")).len(), 100);
    }
}
