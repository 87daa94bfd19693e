//! Tools of servers that are starting: clients are shown them as they are pinned, and their calls
//! wait for the server.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rmcp::model::Tool;
use syscap::format::{Manifest, ToolId};
use syscap::provide::Standing;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;
use crate::governed::catalog::{Catalog, StartingTool};
use crate::governed::data;
use crate::governed::kernelside::{Unreached, blocking};
use crate::governed::manifest::Definition;

/// How long the first servers that run wait for the rest, and a call for its server.
pub(crate) const LATE: Duration = Duration::from_secs(5);

/// The tools on record of all servers that are starting.
///
/// For a server that ran before in this gateway these are the tools that it last offered: the
/// record may hold others that it has not had for long.
pub(crate) async fn tools(
    gateway: &Arc<Gateway>,
) -> Result<BTreeMap<ToolId, StartingTool>, Unreached> {
    if !gateway.servers.iter().any(|server| server.is_starting()) {
        return Ok(BTreeMap::new());
    }
    let kernel = Arc::clone(&gateway.kernel);
    let recorded = blocking(move || kernel.recorded()).await??;
    let (before, mut all) = (gateway.catalog(), BTreeMap::new());
    let starting = gateway.servers.iter().enumerate().filter(|(_, server)| server.is_starting());
    for (place, server) in starting {
        let (prefix, below) = (gateway.prefix(place), format!("{}.", server.name));
        let last = last_offered(&before, place);
        for manifest in &recorded {
            let id = &manifest.tool;
            // Only tools are called by a name: what else a server has stands one level deeper.
            let own = id.as_str().strip_prefix(&below).filter(|own| !own.contains('.'));
            let Some(own) = own.filter(|_| last.as_ref().is_none_or(|last| last.contains(&id)))
            else {
                continue;
            };
            let pinned = pinned(manifest);
            let name = pinned.as_ref().map_or(own, |tool| &*tool.name);
            let name = format!("{prefix}{name}");
            all.insert(id.clone(), StartingTool { server: place, name, pinned });
        }
    }
    Ok(all)
}

/// The tools that a server last offered, of those that could be called. `None` where it has
/// offered none yet.
fn last_offered(before: &Catalog, place: usize) -> Option<Vec<&ToolId>> {
    let offered = before.all().iter().filter(|(_, tool)| tool.server == place);
    let ready = offered.clone().filter(|(_, tool)| tool.standing == Standing::Ready);
    let starting = before.starting().iter().filter(|(_, tool)| tool.server == place);
    let last: Vec<&ToolId> = ready.map(|(id, _)| id).chain(starting.map(|(id, _)| id)).collect();
    (offered.count() > 0 || !last.is_empty()).then_some(last)
}

/// The definition that is pinned: none but the one whose hash is on record.
fn pinned(manifest: &Manifest) -> Option<Tool> {
    let whole = manifest.whole_definition()?;
    let definition = Definition::read(&data::to_json(whole.item())).ok()?;
    (Some(definition.hash) == manifest.definition).then_some(definition.tool)
}

/// Waits until the server of a tool has started or is given up, no longer than the beginning
/// waits for a server.
pub(crate) async fn wait(gateway: &Gateway, tool: &ToolId, cancel: &CancellationToken) {
    let mut catalogs = gateway.catalogs();
    let starting = catalogs.borrow().is_starting(tool);
    // What the token does not grant is refused whether its server runs or not.
    if !starting || !gateway.granted().contains(tool) {
        return;
    }
    let started = async {
        // The gateway has the other end.
        catalogs.wait_for(|catalog| !catalog.is_starting(tool)).await.ok();
    };
    tokio::select! {
        () = started => {}
        () = sleep(LATE) => {}
        () = cancel.cancelled() => {}
        () = gateway.closing.cancelled() => {}
    }
}
