//! The beginning: servers are started, their tools offered, and the session is opened.

use std::{sync::Arc, time::Duration};

use syscap::{
    format::{id::ToolId, manifest::EffectClass},
    provide::Standing,
};

use crate::{
    capabilities::Able,
    gateway::{Gateway, NoBeginning},
    keep,
    kernelside::blocking,
    offer::offer,
    say::say,
    upstream::NoticeStream,
};

/// How long a client has to be told that there is no beginning.
const TOLD: Duration = Duration::from_millis(300);

/// Starts the servers, offers their tools and opens the session: once, when it is known what
/// the client is able to do.
pub(crate) async fn begin(gateway: &Arc<Gateway>, able: Able) -> Result<(), NoBeginning> {
    let begin = gateway.begun.get_or_try_init(|| begin_once(gateway, able));
    match begin.await {
        Ok(()) => Ok(()),
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
    let mut started = tokio::task::JoinSet::new();
    for place in 0..gateway.servers.len() {
        let (gateway, able) = (Arc::clone(gateway), able.clone());
        started.spawn(async move { (place, keep::open(&gateway, place, &able).await) });
    }
    let mut streams: Vec<(usize, Option<NoticeStream>)> = Vec::new();
    while let Some(opened) = started.join_next().await {
        let Ok((place, opened)) = opened else { continue };
        let name = gateway.servers.get(place).map_or("", |server| &server.name);
        match opened {
            Ok(notices) => streams.push((place, Some(notices))),
            Err(error) => {
                say(&format!("server {name}: {error}"));
                streams.push((place, None));
            }
        }
    }
    if !gateway.servers.is_empty() && streams.iter().all(|(_, notices)| notices.is_none()) {
        return Err(NoBeginning::NoServer);
    }
    offer(gateway).await?;
    let ready = gateway.catalog().all().clone();
    let ready: Vec<ToolId> = ready
        .into_iter()
        .filter(|(_, tool)| tool.standing == Standing::Ready)
        .map(|(id, _)| id)
        .collect();
    let kernel = Arc::clone(&gateway.kernel);
    let session = blocking(move || kernel.open_session(&ready)).await??;
    gateway.set_session(session);
    say_what_is_shown(gateway);
    for (place, notices) in streams {
        gateway.tasks.spawn(keep::keep(Arc::clone(gateway), place, notices, able.clone()));
    }
    Ok(())
}

/// Says what a client will see, and what a policy may stop for want of a word.
fn say_what_is_shown(gateway: &Gateway) {
    let (catalog, granted) = (gateway.catalog(), gateway.granted());
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
    say(&format!("{} is granted {shown} tools", gateway.options.agent));
    if careful > 0 {
        say(&format!(
            "{careful} of them count as external_write, which the policy may want to be asked \
             about; say what they do by --class, or trust the server by --confirm-hints"
        ));
    }
}
