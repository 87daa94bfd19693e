//! A client's subscriptions: resources, log messages, and changed roots.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    ClientRequest, LoggingLevel, SetLevelRequest, SetLevelRequestParams, UnsubscribeRequest,
    UnsubscribeRequestParams,
};

use crate::client::capabilities::WireKind;
use crate::client::subscriptions::{Joining, WatchedAt};
use crate::gateway::Gateway;
use crate::governed::flight::Flight;
use crate::governed::passing::{self, Asked};
use crate::options::Question;
use crate::upstream::server::McpServer;

/// Watches a resource, at the server that has it.
pub(crate) async fn subscribe(
    gateway: &Arc<Gateway>,
    uri: &str,
    asked: &Asked,
) -> Result<(), ErrorData> {
    match gateway.subscriptions.join(uri) {
        Joining::Watched => return Ok(()),
        Joining::First => {}
        Joining::Full => {
            return Err(ErrorData::internal_error("too many resources are watched", None));
        }
    }
    let place = passing::subscribe(gateway, uri, asked).await?;
    let stateless = gateway.server(place).is_some_and(|server| server.is_stateless());
    let wire = if stateless { WireKind::Stateless } else { WireKind::Session };
    gateway.subscriptions.add(uri, WatchedAt { place, wire });
    Ok(())
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

/// Says to every server of the older wire that may ask for them that the client's roots changed.
pub(crate) async fn roots_changed(gateway: &Gateway) {
    let told = |server: &&McpServer| server.command.asks.contains(&Question::Roots);
    let told = gateway.servers.iter().filter(told);
    for connection in told.filter_map(|server| server.connection()) {
        if connection.wire == WireKind::Session {
            connection.peer().notify_roots_list_changed().await.ok();
        }
    }
}
