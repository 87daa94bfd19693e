//! `tools/list`: a server's tools, read and kept within its quota; good until it says that they
//! are others now.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::PoisonError,
    time::Duration,
};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    listing::ToolListing,
    lists::{self, ListMethod, Whole},
    manifest::Definition,
    names,
    quota::TooMuch,
    say::say,
    server::McpServer,
    upstream::{Connection, Trouble},
};

/// How long a server may take to list its tools.
const LIST_MAX: Duration = Duration::from_secs(30);
/// Most lines that are said of one list.
const SAID_MAX: usize = 16;

/// Lists a server's tools. Where that fails it has none.
pub(crate) async fn list(
    server: &McpServer,
    connection: &Connection,
    closing: &CancellationToken,
) -> Result<(), Trouble> {
    let changes = connection.changes();
    let read = match &connection.capabilities.tools {
        Some(_) => ask(connection, closing).await.map(|whole| read(server, &whole)),
        None => Ok(Vec::new()),
    };
    let (definitions, listed) = match read {
        Ok(definitions) => (Some(definitions), Ok(())),
        Err(trouble) => {
            say(&format!("server {}: tools/list: {trouble}", server.name));
            (None, Err(trouble))
        }
    };
    connection.set_listing(ToolListing { changes, definitions });
    listed
}

async fn ask(connection: &Connection, closing: &CancellationToken) -> Result<Whole, Trouble> {
    let cancel = closing.child_token();
    let whole = lists::all(connection, ListMethod::Tools, None, &cancel);
    tokio::pin!(whole);
    tokio::select! {
        whole = &mut whole => return whole,
        () = sleep(LIST_MAX) => cancel.cancel(),
    }
    whole.await
}

/// The tools of a list that can be offered.
fn read(server: &McpServer, whole: &Whole) -> Vec<Definition> {
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
    let mut quota = server.quota.lock().unwrap_or_else(PoisonError::into_inner);
    if whole.cut {
        quota.passed(TooMuch::Tools);
    }
    let definitions = quota.admit(definitions);
    let news = quota.news();
    drop(quota);
    wrong.truncate(SAID_MAX);
    wrong.extend(news.iter().map(ToString::to_string));
    for wrong in wrong {
        say(&format!("server {}: {wrong}", server.name));
    }
    definitions
}
