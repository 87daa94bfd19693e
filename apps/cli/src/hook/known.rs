//! The tools that come with a client: a list with its date and its source, beside this file.
//!
//! A tool's class comes from the list, or from the operator (`--class`), never from the arguments, which
//! the model writes.

use std::sync::LazyLock;

use syscap::format::{EffectClass, ToolId};

use super::client::Client;
use crate::parse;

/// A tool that comes with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownTool {
    /// The client's name for it.
    pub(crate) name: &'static str,
    /// The last part of its id.
    pub(super) id: &'static str,
    pub(super) class: EffectClass,
    /// The argument by which a tool for files always names one, in full. A tool that may leave it out
    /// works in the client's folder then.
    pub(super) file: Option<&'static str>,
}

/// The class in a list of a tool that runs what it is given: it is one of [`Client::other`].
const OTHER: &str = "other";

static CLAUDE_CODE: LazyLock<Vec<KnownTool>> =
    LazyLock::new(|| read(include_str!("claude_code.tsv")));
static GEMINI_CLI: LazyLock<Vec<KnownTool>> =
    LazyLock::new(|| read(include_str!("gemini_cli.tsv")));

/// The list: of a line that can't be read its tool is not known, and so an other one.
fn read(text: &'static str) -> Vec<KnownTool> {
    let tool = |line: &'static str| {
        let mut fields = line.split('\t');
        let (name, id, class) = (fields.next()?, fields.next()?, fields.next()?);
        let class = parse::class(class).ok()?;
        Some(KnownTool { name, id, class, file: fields.next() })
    };
    lines(text).filter_map(tool).collect()
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

impl Client {
    /// The tools that come with it, and have a class.
    pub(crate) fn known(self) -> &'static [KnownTool] {
        match self {
            Self::ClaudeCode => &CLAUDE_CODE,
            Self::GeminiCli => &GEMINI_CLI,
        }
    }

    /// The known tool of that name.
    pub(super) fn known_as(self, name: &str) -> Option<&'static KnownTool> {
        self.known().iter().find(|known| known.name == name)
    }

    /// The tool that stands for each one of the client's own that the list does not have. It is asked
    /// about each time: it has an argument of code.
    pub(crate) fn other(self) -> Option<ToolId> {
        ToolId::new(&format!("{}.{OTHER}", self.prefix()))
    }

    /// True if a name is one of the client's own tools that the list does not have.
    pub(super) fn is_other(self, name: &str) -> bool {
        !name.starts_with(self.mcp_prefix()) && self.known_as(name).is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn lists_are_read_to_the_last_line() {
        for client in Client::value_variants() {
            let text = match client {
                Client::ClaudeCode => include_str!("claude_code.tsv"),
                Client::GeminiCli => include_str!("gemini_cli.tsv"),
            };
            let is_other = |line: &&str| line.split('\t').nth(2) == Some(OTHER);
            let others = lines(text).filter(is_other).count();
            assert_eq!(client.known().len() + others, lines(text).count());
            let ids: BTreeSet<&str> = client.known().iter().map(|known| known.id).collect();
            assert_eq!(ids.len(), client.known().len(), "an id stands twice");
            assert!(!ids.contains(OTHER));
            assert!(client.known().iter().all(|known| client.tool(known.name).is_some()));
            let names: Vec<&str> = lines(text).filter_map(|line| line.split('\t').next()).collect();
            assert!(names.is_sorted_by_key(|name| name.to_lowercase()), "{names:?}");
        }
    }
}
