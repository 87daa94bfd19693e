//! Whole lists of a server: every page, within bounds.

use std::{collections::BTreeSet, sync::Arc};

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, PaginatedRequestParams,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    flight::Flight,
    notice::ChangedList,
    upstream::{Connection, Trouble},
};

/// Most pages of a list.
const PAGES_MAX: usize = 64;
/// Most bytes of a list, as text.
const BYTES_MAX: usize = 16 << 20;
/// Most entries of a list.
const ENTRIES_MAX: usize = 1_024;

/// What asks for a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListMethod {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl ListMethod {
    /// The list that a server says is another now.
    pub(crate) const fn changed(self) -> ChangedList {
        match self {
            Self::Tools => ChangedList::Tools,
            Self::Prompts => ChangedList::Prompts,
            Self::Resources | Self::Templates => ChangedList::Resources,
        }
    }

    /// The key under which its entries stand.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    fn request(self, cursor: Option<String>) -> ClientRequest {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        match self {
            Self::Tools => ListToolsRequest::with_param(params).into(),
            Self::Prompts => ListPromptsRequest::with_param(params).into(),
            Self::Resources => ListResourcesRequest::with_param(params).into(),
            Self::Templates => ListResourceTemplatesRequest::with_param(params).into(),
        }
    }
}

/// A list as far as it was given.
pub(crate) struct Whole {
    pub(crate) entries: Vec<Value>,
    /// Whether there was more than is taken.
    pub(crate) cut: bool,
}

/// All entries of a list, each once. A cursor that was given before ends it: the server goes round
/// in a circle, and what it gave is all that it has.
pub(crate) async fn all(
    connection: &Connection,
    method: ListMethod,
    flight: Option<&Arc<Flight>>,
    cancel: &CancellationToken,
) -> Result<Whole, Trouble> {
    let (mut entries, mut cursor, mut bytes) = (Vec::new(), None, 0_usize);
    let (mut cursors, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..PAGES_MAX {
        let mut page = connection.ask(method.request(cursor), flight, cancel).await?;
        bytes = bytes.saturating_add(page.to_string().len());
        if bytes > BYTES_MAX {
            return Ok(Whole { entries, cut: true });
        }
        if let Some(Value::Array(more)) = page.get_mut(method.key()).map(Value::take) {
            entries.extend(more.into_iter().filter(|entry| seen.insert(entry.to_string())));
        }
        if entries.len() > ENTRIES_MAX {
            entries.truncate(ENTRIES_MAX);
            return Ok(Whole { entries, cut: true });
        }
        match page.get("nextCursor").and_then(Value::as_str) {
            Some(next) if cursors.insert(next.to_owned()) => cursor = Some(next.to_owned()),
            Some(_) | None => return Ok(Whole { entries, cut: false }),
        }
    }
    Ok(Whole { entries, cut: true })
}
