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
    gateway::Gateway,
    passing,
    subscriptions::{Joining, WatchedAt},
};

/// Watches a resource, at the server that has it.
pub(crate) async fn subscribe(
    gateway: &Gateway,
    uri: &str,
    flight: &Arc<Flight>,
) -> Result<(), ErrorData> {
    match gateway.subscriptions.join(uri) {
        Joining::Watched => return Ok(()),
        Joining::First => {}
        Joining::Full => {
            return Err(ErrorData::internal_error("too many resources are watched", None));
        }
    }
    let known = gateway.routes.find(uri).or_else(|| watcher(gateway));
    let stateless =
        known.filter(|place| gateway.server(*place).is_some_and(|server| server.is_stateless()));
    let (place, wire) = match stateless {
        Some(place) => {
            listen(gateway, place, uri).await?;
            (place, WireKind::Stateless)
        }
        None => {
            let request = || {
                let params = SubscribeRequestParams::new(uri);
                ClientRequest::SubscribeRequest(SubscribeRequest::new(params))
            };
            (passing::first(gateway, uri, flight, request).await?.0, WireKind::Session)
        }
    };
    gateway.subscriptions.add(uri, WatchedAt { place, wire });
    Ok(())
}

/// The first server that lets resources be watched.
fn watcher(gateway: &Gateway) -> Option<usize> {
    gateway.servers.iter().position(|server| {
        let connection = server.connection();
        let resources = connection.and_then(|connection| connection.capabilities.resources.clone());
        resources.is_some_and(|resources| resources.subscribe == Some(true))
    })
}

async fn listen(gateway: &Gateway, place: usize, uri: &str) -> Result<(), ErrorData> {
    let gone = || ErrorData::internal_error("the server broke off", None);
    let connection =
        gateway.server(place).and_then(|server| server.connection()).ok_or_else(gone)?;
    let mut filter = SubscriptionFilter::new();
    filter.resource_subscriptions = Some(vec![uri.to_owned()]);
    let listening = connection.listen(uri, filter).await;
    listening.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Watches it no more.
pub(crate) async fn unsubscribe(
    gateway: &Gateway,
    uri: &str,
    flight: &Arc<Flight>,
) -> Result<(), ErrorData> {
    let Some(WatchedAt { place, wire }) = gateway.subscriptions.leave(uri) else { return Ok(()) };
    let Some(connection) = gateway.server(place).and_then(|server| server.connection()) else {
        return Ok(());
    };
    if wire == WireKind::Stateless {
        connection.unlisten(uri).await;
        return Ok(());
    }
    let params = UnsubscribeRequestParams::new(uri);
    let request = ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(params));
    connection.ask(request, Some(flight), &gateway.closing).await.map(drop).map_err(passing::error)
}

/// Says to every server that logs how much it is to log.
pub(crate) async fn set_level(
    gateway: &Gateway,
    level: LoggingLevel,
    flight: &Arc<Flight>,
) -> Result<(), ErrorData> {
    for connection in gateway.servers.iter().filter_map(|server| server.connection()) {
        if connection.capabilities.logging.is_some() && connection.wire == WireKind::Session {
            let request = SetLevelRequest::new(SetLevelRequestParams::new(level));
            let request = ClientRequest::SetLevelRequest(request);
            connection.ask(request, Some(flight), &flight.cancel).await.map_err(passing::error)?;
        }
    }
    Ok(())
}

/// Says to every server of the older wire that the client's roots changed.
pub(crate) async fn roots_changed(gateway: &Gateway) {
    for connection in gateway.servers.iter().filter_map(|server| server.connection()) {
        if connection.wire == WireKind::Session {
            connection.peer().notify_roots_list_changed().await.ok();
        }
    }
}
