//! `tools/list` and `prompts/list`: a server's tools and prompts, read and kept within its quota;
//! good until it says that they are others now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::governed::manifest::Definition;
use crate::governed::names;
use crate::say::say;
use crate::upstream::listing::ToolListing;
use crate::upstream::lists::{self, ListMethod, Whole};
use crate::upstream::quota::TooMuch;
use crate::upstream::server::McpServer;
use crate::upstream::{Connection, Trouble};

/// How long a server may take to list its tools.
const LIST_MAX: Duration = Duration::from_secs(30);
/// How long it may take to list its prompts.
const PROMPTS_MAX: Duration = Duration::from_secs(10);
/// Most lines that are said of one list.
const SAID_MAX: usize = 16;

/// Lists a server's tools and its prompts, side by side. If that fails it has none.
pub(crate) async fn list(
    server: &McpServer,
    connection: &Connection,
    closing: &CancellationToken,
) -> Result<(), Trouble> {
    let (tools, prompts) = tokio::join!(
        list_of(server, connection, ListMethod::Tools, closing),
        list_of(server, connection, ListMethod::Prompts, closing)
    );
    tools.and(prompts)
}

pub(crate) async fn list_of(
    server: &McpServer,
    connection: &Connection,
    method: ListMethod,
    closing: &CancellationToken,
) -> Result<(), Trouble> {
    let has = &connection.capabilities;
    let asked = match method {
        ListMethod::Prompts => has.prompts.is_some() && server.passed.prompts,
        _ => has.tools.is_some(),
    };
    let list = method.changed();
    let changes = connection.changes(list);
    let read = match asked {
        true => ask(connection, method, closing).await.map(|whole| read(server, method, &whole)),
        false => Ok(Vec::new()),
    };
    let (definitions, listed) = match read {
        Ok(definitions) => (Some(definitions), Ok(())),
        Err(trouble) => {
            say(&format!("server {}: {}/list: {trouble}", server.name, method.key()));
            (None, Err(trouble))
        }
    };
    connection.set_listing(list, ToolListing { changes, definitions });
    listed
}

async fn ask(
    connection: &Connection,
    method: ListMethod,
    closing: &CancellationToken,
) -> Result<Whole, Trouble> {
    let cancel = closing.child_token();
    let whole = lists::all(connection, method, None, &cancel);
    tokio::pin!(whole);
    let most = if method == ListMethod::Tools { LIST_MAX } else { PROMPTS_MAX };
    tokio::select! {
        whole = &mut whole => return whole,
        () = sleep(most) => cancel.cancel(),
    }
    whole.await
}

/// The offerable parts of a list.
fn read(server: &McpServer, method: ListMethod, whole: &Whole) -> Vec<Definition> {
    let mut definitions: BTreeMap<String, Definition> = BTreeMap::new();
    let (mut wrong, mut twice) = (Vec::new(), BTreeSet::new());
    let (what, quota) = match method {
        ListMethod::Prompts => ("prompts", &server.prompts),
        _ => ("tools", &server.quota),
    };
    for value in &whole.entries {
        let read = match method {
            ListMethod::Prompts => Definition::prompt(value),
            _ => Definition::read(value),
        };
        match read {
            Ok(definition) if what == "tools" && !server.command.takes(definition.name()) => {}
            Ok(definition) => {
                let name = definition.name().to_owned();
                // One that says the same twice is one.
                let same = definitions.get(&name).is_none_or(|known| *known == definition);
                if !same {
                    twice.insert(name);
                    continue;
                }
                definitions.insert(name, definition);
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
    wrong.extend(twice.iter().map(|name| format!("two {what} are called {name:?}")));
    let mut quota = quota.lock().unwrap_or_else(PoisonError::into_inner);
    if whole.cut {
        quota.passed(TooMuch::Tools);
    }
    let all = definitions.len();
    let definitions = quota.admit(definitions);
    let news = quota.news();
    drop(quota);
    wrong.truncate(SAID_MAX);
    let (taken, least) = (definitions.len(), if whole.cut { "at least " } else { "" });
    let said = |over: &TooMuch| format!("{over}: of {least}{all} {what} {taken} are offered");
    wrong.extend(news.iter().map(said));
    for wrong in wrong {
        say(&format!("server {}: {wrong}", server.name));
    }
    definitions
}
