//! A server's tools, or its prompts, as it last listed them.

use syscap::format::DefinitionHash;

use crate::governed::manifest::Definition;

/// The tools, or the prompts, of one connection. A new connection has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolListing {
    /// How often the server had said, before it was asked, that they changed.
    pub(crate) changes: u64,
    /// The definitions that it listed. `None` where it was not asked, or did not say.
    pub(crate) definitions: Option<Vec<Definition>>,
}

impl ToolListing {
    pub(crate) fn name(&self, definition: DefinitionHash) -> Option<String> {
        let mut all = self.definitions.iter().flatten();
        all.find(|listed| listed.hash == definition).map(|listed| listed.name().to_owned())
    }
}
