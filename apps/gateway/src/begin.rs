//! The beginning: servers are started, their tools offered, and the session is opened.

use std::{sync::Arc, time::Duration};

use syscap::{
    format::{id::ToolId, manifest::EffectClass},
    provide::Standing,
};

use crate::{
    capabilities::Able,
    hub::{Hub, NoBeginning},
    keep,
    kernelside::blocking,
    offer::offer,
    say::say,
    upstream::Said,
};

/// How long a client has to be told that there is no beginning.
const TOLD: Duration = Duration::from_millis(300);
/// Starts the servers, offers their tools and opens the session: once, when it is known what
/// the client is able to do.
pub(crate) async fn begin(hub: &Arc<Hub>, able: Able) -> Result<(), NoBeginning> {
    let begin = hub.begun.get_or_try_init(|| begin_once(hub, able));
    match begin.await {
        Ok(()) => Ok(()),
        Err(error) => {
            let error = hub.failed.get_or_init(|| error).clone();
            let closing = hub.closing.clone();
            // The client is told first.
            tokio::spawn(async move {
                tokio::time::sleep(TOLD).await;
                closing.cancel();
            });
            Err(error)
        }
    }
}

async fn begin_once(hub: &Arc<Hub>, able: Able) -> Result<(), NoBeginning> {
    let mut started = tokio::task::JoinSet::new();
    for place in 0..hub.servers.len() {
        let (hub, able) = (Arc::clone(hub), able.clone());
        started.spawn(async move { (place, keep::open(&hub, place, &able).await) });
    }
    let mut said: Vec<(usize, Option<Said>)> = Vec::new();
    while let Some(opened) = started.join_next().await {
        let Ok((place, opened)) = opened else { continue };
        let name = hub.servers.get(place).map_or("", |server| &server.name);
        match opened {
            Ok(says) => said.push((place, Some(says))),
            Err(error) => {
                say(&format!("server {name}: {error}"));
                said.push((place, None));
            }
        }
    }
    if !hub.servers.is_empty() && said.iter().all(|(_, says)| says.is_none()) {
        return Err(NoBeginning::NoServer);
    }
    offer(hub).await?;
    let ready = hub.catalog().all().clone();
    let ready: Vec<ToolId> = ready
        .into_iter()
        .filter(|(_, tool)| tool.standing == Standing::Ready)
        .map(|(id, _)| id)
        .collect();
    let kernel = Arc::clone(&hub.kernel);
    let seat = blocking(move || kernel.sit_down(&ready)).await??;
    hub.sit(seat);
    say_what_is_shown(hub);
    for (place, says) in said {
        hub.tasks.spawn(keep::keep(Arc::clone(hub), place, says, able.clone()));
    }
    Ok(())
}

/// Says what a client will see, and what a policy may stop for want of a word.
fn say_what_is_shown(hub: &Hub) {
    let (catalog, granted) = (hub.catalog(), hub.granted());
    let shown = catalog.list(&granted).len();
    let careful = catalog
        .all()
        .iter()
        .filter(|(id, tool)| granted.contains(*id) && tool.effect == EffectClass::ExternalWrite);
    let careful = careful.count();
    let trusted = catalog.all().values().filter(|tool| tool.trusted).count();
    if trusted > 0 {
        say(&format!(
            "WARNING: the results of {trusted} tools count as trusted: what a stranger wrote \
             into them counts as the operator's word"
        ));
    }
    say(&format!("{} is granted {shown} tools", hub.options.agent));
    if careful > 0 {
        say(&format!(
            "{careful} of them count as external_write, which the policy may want to be asked \
             about; say what they do by --class, or trust the server by --confirm-hints"
        ));
    }
}
