//! The beginning: servers are started, their tools offered, and the session is opened.

use std::{sync::Arc, time::Duration};

use rmcp::model::ClientCapabilities;
use syscap::format::EffectClass;

use crate::client::capabilities::{Able, WireKind};
use crate::gateway::{Gateway, NoBeginning};
use crate::governed::kernelside::blocking;
use crate::governed::offer::{offer, rename};
use crate::say::say;
use crate::token::news;
use crate::token::next::review;
use crate::upstream::keep;
use crate::upstream::server::McpServer;
use crate::upstream::starting::LATE;

/// How long a client has to be told that there is no beginning.
const TOLD: Duration = Duration::from_millis(300);

/// Starts the servers, offers their tools and opens the session: once, when it is known what
/// the client is able to do.
pub(crate) async fn begin(gateway: &Arc<Gateway>, able: Able) -> Result<(), NoBeginning> {
    if let Some(error) = gateway.failed.get() {
        return Err(error.clone());
    }
    let begin = gateway.begun.get_or_try_init(|| begin_once(gateway, able));
    match begin.await {
        Ok(()) => Ok(()),
        Err(error) if gateway.closing.is_cancelled() => Err(error),
        Err(error) => {
            let error = gateway.failed.get_or_init(|| error).clone();
            let closing = gateway.closing.clone();
            // The client is told first.
            tokio::spawn(async move {
                tokio::time::sleep(TOLD).await;
                closing.cancel();
            });
            Err(error)
        }
    }
}

async fn begin_once(gateway: &Arc<Gateway>, able: Able) -> Result<(), NoBeginning> {
    for place in 0..gateway.servers.len() {
        gateway.tasks.spawn(keep::keep(Arc::clone(gateway), place, able.clone()));
    }
    tokio::select! {
        () = started(gateway) => {}
        () = gateway.closing.cancelled() => return Err(NoBeginning::Ends),
    }
    go_on_without_the_late(gateway)?;
    open(gateway).await?;
    rename(gateway).await?;
    say_what_is_shown(gateway);
    news::take_up(gateway).await;
    gateway.opened.cancel();
    gateway.tasks.spawn(news::watch(Arc::clone(gateway)));
    Ok(())
}

/// Offers the tools, and opens the session.
async fn open(gateway: &Arc<Gateway>) -> Result<(), NoBeginning> {
    offer(gateway).await?;
    let ready = gateway.grantable();
    let kernel = Arc::clone(&gateway.kernel);
    let session = blocking(move || kernel.open_session(&ready)).await??;
    gateway.set_session(session);
    Ok(())
}

/// Starts the servers, waits for each, and opens a session: for a run, before its program begins.
pub(crate) async fn settle(gateway: &Arc<Gateway>) -> Result<(), NoBeginning> {
    let able = Able::new(WireKind::Session, ClientCapabilities::default());
    for place in 0..gateway.servers.len() {
        gateway.tasks.spawn(keep::keep(Arc::clone(gateway), place, able.clone()));
    }
    for server in &gateway.servers {
        let settled = server.settled.cancelled();
        if tokio::time::timeout(LATE, settled).await.is_err() {
            say(&format!("server {}: it has not said what it is yet; waiting for it", server.name));
            server.settled.cancelled().await;
        }
    }
    go_on_without_the_late(gateway)?;
    open(gateway).await?;
    say_what_is_shown(gateway);
    Ok(())
}

/// Waits until each server has been started or has failed; no longer than a moment for the rest,
/// once there is something to offer.
async fn started(gateway: &Gateway) {
    let all = async {
        for server in &gateway.servers {
            server.settled.cancelled().await;
        }
    };
    let some = async {
        if !gateway.options.built_in {
            gateway.running.cancelled().await;
        }
        tokio::time::sleep(LATE).await;
    };
    tokio::select! {
        () = all => {}
        () = some => {}
    }
}

/// Notes who is late, and says so, where there is anybody to wait for.
fn go_on_without_the_late(gateway: &Gateway) -> Result<(), NoBeginning> {
    let servers = &gateway.servers;
    servers.iter().for_each(McpServer::begins);
    let late = servers.iter().filter(|server| !server.settled.is_cancelled());
    let late: Vec<&McpServer> = late.collect();
    let runs = servers.iter().any(|server| server.connection().is_some());
    if !servers.is_empty() && !runs && late.is_empty() {
        let why = servers
            .iter()
            .filter_map(|server| Some(format!("server {}: {}", server.name, server.failure()?)));
        return Err(NoBeginning::NoServer(why.collect::<Vec<String>>().join("; ")));
    }
    for server in late {
        say(&format!(
            "server {}: it has not said what it is yet; its tools come once it has",
            server.name
        ));
    }
    Ok(())
}

/// Says what a client will see, and what a policy may stop for want of a word.
fn say_what_is_shown(gateway: &Gateway) {
    let (catalog, granted) = (gateway.catalog(), gateway.granted());
    let shown = catalog.list(&granted).len();
    // Of what an operator has set, by --review or a command, there is nothing to propose.
    let careful = catalog.all().iter().filter(|(id, tool)| {
        granted.contains(*id) && tool.effect == EffectClass::ExternalWrite && !tool.set
    });
    let careful = careful.count();
    let trusted = catalog.all().values().filter(|tool| tool.trusted).count();
    if trusted > 0 {
        say(&format!(
            "WARNING: the results of {trusted} tools count as trusted: what a stranger wrote \
             into them counts as the operator's word"
        ));
    }
    say(&format!("{} may call {shown} tools", gateway.options.agent));
    let views = gateway
        .servers
        .iter()
        .map(|server| format!("{} {}", server.name, gateway.starter.view(&server.command)));
    let views: Vec<String> = views.collect();
    if !views.is_empty() {
        say(&format!("what its servers see: {}", views.join("; ")));
    }
    let unlimited = catalog.all().iter().filter(|(id, _)| granted.contains(*id));
    let unlimited: usize = unlimited.map(|(_, tool)| tool.unlimited).sum();
    if unlimited > 0 {
        say(&format!(
            "arguments that look like a path, URL, host or recipient and are not limited: {unlimited}; \
             `syscap doctor {} --all` names them",
            gateway.kernel.home()
        ));
    }
    if careful > 0 {
        say(&format!(
            "tools without a class: {careful}; they count as external_write, which most policies ask \
             about; set classes: {}",
            review(gateway, &gateway.options.servers)
        ));
    }
}
