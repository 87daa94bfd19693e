//! What a client wants to hear of: resources, log messages; and of roots that changed.

use std::sync::Arc;

use rmcp::{
    ErrorData,
    model::{
        ClientRequest, LoggingLevel, SetLevelRequest, SetLevelRequestParams, SubscribeRequest,
        SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequest, UnsubscribeRequestParams,
    },
};

use crate::{
    capabilities::WireKind,
    flight::Flight,
    hub::Hub,
    passing,
    subscriptions::{Joined, WatchedAt},
};

/// Watches a resource, at the server that has it.
pub(crate) async fn subscribe(hub: &Hub, uri: &str, flight: &Arc<Flight>) -> Result<(), ErrorData> {
    match hub.subscriptions.join(uri) {
        Joined::Watched => return Ok(()),
        Joined::First => {}
        Joined::Full => {
            return Err(ErrorData::internal_error("too many resources are watched", None));
        }
    }
    let known = hub.routes.find(uri).or_else(|| watcher(hub));
    let stateless =
        known.filter(|place| hub.server(*place).is_some_and(|server| server.is_stateless()));
    let (place, wire) = match stateless {
        Some(place) => {
            listen(hub, place, uri).await?;
            (place, WireKind::Stateless)
        }
        None => {
            let request = || {
                let params = SubscribeRequestParams::new(uri);
                ClientRequest::SubscribeRequest(SubscribeRequest::new(params))
            };
            (passing::first(hub, uri, flight, request).await?.0, WireKind::Session)
        }
    };
    hub.subscriptions.add(uri, WatchedAt { place, wire });
    Ok(())
}

/// The first server that lets resources be watched.
fn watcher(hub: &Hub) -> Option<usize> {
    hub.servers.iter().position(|server| {
        let link = server.link();
        let resources = link.and_then(|link| link.capabilities.resources.clone());
        resources.is_some_and(|resources| resources.subscribe == Some(true))
    })
}

async fn listen(hub: &Hub, place: usize, uri: &str) -> Result<(), ErrorData> {
    let gone = || ErrorData::internal_error("the server broke off", None);
    let link = hub.server(place).and_then(|server| server.link()).ok_or_else(gone)?;
    let mut filter = SubscriptionFilter::new();
    filter.resource_subscriptions = Some(vec![uri.to_owned()]);
    let listening = link.listen(uri, filter).await;
    listening.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Watches it no more.
pub(crate) async fn unsubscribe(
    hub: &Hub,
    uri: &str,
    flight: &Arc<Flight>,
) -> Result<(), ErrorData> {
    let Some(WatchedAt { place, wire }) = hub.subscriptions.leave(uri) else { return Ok(()) };
    let Some(link) = hub.server(place).and_then(|server| server.link()) else { return Ok(()) };
    if wire == WireKind::Stateless {
        link.unlisten(uri).await;
        return Ok(());
    }
    let params = UnsubscribeRequestParams::new(uri);
    let request = ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(params));
    link.ask(request, Some(flight), &hub.closing).await.map(drop).map_err(passing::error)
}

/// Says to every server that logs how much it is to log.
pub(crate) async fn set_level(
    hub: &Hub,
    level: LoggingLevel,
    flight: &Arc<Flight>,
) -> Result<(), ErrorData> {
    for link in hub.servers.iter().filter_map(|server| server.link()) {
        if link.capabilities.logging.is_some() && link.wire == WireKind::Session {
            let request = SetLevelRequest::new(SetLevelRequestParams::new(level));
            let request = ClientRequest::SetLevelRequest(request);
            link.ask(request, Some(flight), &flight.cancel).await.map_err(passing::error)?;
        }
    }
    Ok(())
}

/// Says to every server of the older wire that the client's roots changed.
pub(crate) async fn roots_changed(hub: &Hub) {
    for link in hub.servers.iter().filter_map(|server| server.link()) {
        if link.wire == WireKind::Session {
            link.peer().notify_roots_list_changed().await.ok();
        }
    }
}
