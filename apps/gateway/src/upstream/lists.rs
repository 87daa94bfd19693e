//! Whole lists of a server: every page, within bounds.

use std::{collections::BTreeSet, sync::Arc};

use rmcp::ErrorData;
use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, PaginatedRequestParams,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::governed::flight::Flight;
use crate::upstream::notice::ChangedList;
use crate::upstream::{Connection, Trouble};

/// Most pages of a list.
const PAGES_MAX: usize = 64;
/// Most bytes of a list, as text.
const BYTES_MAX: usize = 16 << 20;
/// Most entries of a list.
const ENTRIES_MAX: usize = 1_024;

/// The caller of a list.
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
    /// True if there was more than is taken.
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
        let (more, next) = read(&mut page, method).map_err(Trouble::Refused)?;
        entries.extend(more.into_iter().filter(|entry| seen.insert(entry.to_string())));
        if entries.len() > ENTRIES_MAX {
            entries.truncate(ENTRIES_MAX);
            return Ok(Whole { entries, cut: true });
        }
        match next {
            Some(next) if cursors.insert(next.clone()) => cursor = Some(next),
            Some(_) | None => return Ok(Whole { entries, cut: false }),
        }
    }
    Ok(Whole { entries, cut: true })
}

/// The entries of a page, and where the next begins, if there is one.
///
/// # Errors
/// What is there and of another type: it is not as if it were absent.
fn read(page: &mut Value, method: ListMethod) -> Result<(Vec<Value>, Option<String>), ErrorData> {
    let odd = |key: &str| {
        let said = format!("the server answered with a \"{key}\" of another type");
        ErrorData::internal_error(said, None)
    };
    let entries = match page.get_mut(method.key()).map(Value::take) {
        Some(Value::Array(entries)) => entries,
        None => Vec::new(),
        Some(_) => return Err(odd(method.key())),
    };
    match page.get_mut("nextCursor").map(Value::take) {
        Some(Value::String(next)) => Ok((entries, Some(next))),
        None | Some(Value::Null) => Ok((entries, None)),
        Some(_) => Err(odd("nextCursor")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cursor_of_another_type_does_not_end_a_list() {
        let read = |mut page: Value| read(&mut page, ListMethod::Tools);
        assert_eq!(
            read(json!({"tools": [1], "nextCursor": "a"})),
            Ok((vec![json!(1)], Some("a".into())))
        );
        assert_eq!(read(json!({"tools": [], "nextCursor": null})), Ok((vec![], None)));
        assert_eq!(read(json!({})), Ok((vec![], None)));
        for odd in [
            json!({"tools": {"0": 1}}),
            json!({"tools": null}),
            json!({"tools": [], "nextCursor": 2}),
            json!({"tools": [], "nextCursor": false}),
        ] {
            assert!(read(odd.clone()).is_err(), "{odd}");
        }
    }
}
