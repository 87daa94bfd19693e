//! Prompts, resources and completions: they pass through.
//!
//! They are no tool calls, so the kernel neither decides nor records them; they come only from
//! servers that the operator has named, and either kind can be switched off.

use std::sync::Arc;

use rmcp::{
    ErrorData,
    model::{
        ClientRequest, CompleteRequest, CompleteRequestParams, ErrorCode, GetPromptRequest,
        GetPromptRequestParams, Prompt, ReadResourceRequest, ReadResourceRequestParams, Reference,
        Resource, ResourceTemplate,
    },
};
use serde_json::Value;
use tokio::sync::SemaphorePermit;

use crate::{
    flight::Flight,
    gateway::Gateway,
    lists::{self, ListMethod},
    refusal,
    upstream::{Connection, Trouble},
};

/// All prompts of all servers.
pub(crate) async fn prompts(
    gateway: &Gateway,
    flight: &Arc<Flight>,
) -> Result<Vec<Prompt>, ErrorData> {
    let mut prompts = Vec::new();
    for (place, value) in every(gateway, ListMethod::Prompts, flight).await? {
        if let Ok(mut prompt) = serde_json::from_value::<Prompt>(value) {
            prompt.name = format!("{}{}", gateway.prefix(place), prompt.name);
            prompts.push(prompt);
        }
    }
    Ok(prompts)
}

/// All resources of all servers.
pub(crate) async fn resources(
    gateway: &Gateway,
    flight: &Arc<Flight>,
) -> Result<Vec<Resource>, ErrorData> {
    let mut resources = Vec::new();
    for (place, value) in every(gateway, ListMethod::Resources, flight).await? {
        if let Ok(resource) = serde_json::from_value::<Resource>(value) {
            gateway.routes.learn(&resource.uri, place);
            resources.push(resource);
        }
    }
    Ok(resources)
}

/// All templates of resources of all servers.
pub(crate) async fn templates(
    gateway: &Gateway,
    flight: &Arc<Flight>,
) -> Result<Vec<ResourceTemplate>, ErrorData> {
    let all = every(gateway, ListMethod::Templates, flight).await?;
    Ok(all.into_iter().filter_map(|(_, value)| serde_json::from_value(value).ok()).collect())
}

/// A prompt.
pub(crate) async fn prompt(
    gateway: &Gateway,
    mut params: GetPromptRequestParams,
    flight: &Arc<Flight>,
) -> Result<Value, ErrorData> {
    let (connection, name) = whose(gateway, &params.name)?;
    params.name = name;
    params.meta = None;
    let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
    ask(gateway, &connection, request, flight).await
}

/// A resource: of the server that listed it, else of the first that has it.
pub(crate) async fn resource(
    gateway: &Gateway,
    mut params: ReadResourceRequestParams,
    flight: &Arc<Flight>,
) -> Result<Value, ErrorData> {
    params.meta = None;
    let uri = params.uri.clone();
    let request = || ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params.clone()));
    first(gateway, &uri, flight, request).await.map(|(_, value)| value)
}

/// Completions of an argument.
pub(crate) async fn complete(
    gateway: &Gateway,
    mut params: CompleteRequestParams,
    flight: &Arc<Flight>,
) -> Result<Value, ErrorData> {
    params.meta = None;
    match params.r#ref.clone() {
        Reference::Prompt(mut prompt) => {
            let (connection, name) = whose(gateway, &prompt.name)?;
            prompt.name = name;
            params.r#ref = Reference::Prompt(prompt);
            let request = ClientRequest::CompleteRequest(CompleteRequest::new(params));
            ask(gateway, &connection, request, flight).await
        }
        Reference::Resource(resource) => {
            let request = || ClientRequest::CompleteRequest(CompleteRequest::new(params.clone()));
            first(gateway, &resource.uri, flight, request).await.map(|(_, value)| value)
        }
        _ => Err(ErrorData::invalid_params("no such reference", None)),
    }
}

/// Asks the server that listed a URI, else each in turn, until one has an answer.
pub(crate) async fn first(
    gateway: &Gateway,
    uri: &str,
    flight: &Arc<Flight>,
    request: impl Fn() -> ClientRequest,
) -> Result<(usize, Value), ErrorData> {
    let known = gateway.routes.find(uri);
    let places: Vec<usize> = match known {
        Some(place) => vec![place],
        None => (0..gateway.servers.len()).collect(),
    };
    let mut last = ErrorData::resource_not_found("no server has it", None);
    for place in places {
        let Some(connection) = gateway.server(place).and_then(|server| server.connection()) else {
            continue;
        };
        if connection.capabilities.resources.is_none() {
            continue;
        }
        match ask(gateway, &connection, request(), flight).await {
            Ok(value) => return Ok((place, value)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A list of every server that has such. One that gives none is passed over, where there are
/// others.
async fn every(
    gateway: &Gateway,
    method: ListMethod,
    flight: &Arc<Flight>,
) -> Result<Vec<(usize, Value)>, ErrorData> {
    let mut all = Vec::new();
    for (place, server) in gateway.servers.iter().enumerate() {
        let Some(connection) = server.connection() else { continue };
        let has = match method {
            ListMethod::Prompts => connection.capabilities.prompts.is_some(),
            _ => connection.capabilities.resources.is_some(),
        };
        if !has {
            continue;
        }
        let _turn = turn(gateway, &connection, flight).await?;
        match lists::all(&connection, method, Some(flight), &flight.cancel).await {
            Ok(whole) => {
                let mut entries = whole.entries;
                entries.iter_mut().filter_map(Value::as_object_mut).for_each(refusal::disown);
                all.extend(entries.into_iter().map(|value| (place, value)));
            }
            Err(trouble) if gateway.servers.len() == 1 => return Err(error(trouble)),
            Err(_) => {}
        }
    }
    Ok(all)
}

/// The server whose prompt that is, and the name that it has there.
fn whose(gateway: &Gateway, name: &str) -> Result<(Arc<Connection>, String), ErrorData> {
    let fits = (0..gateway.servers.len()).filter_map(|place| {
        let prefix = gateway.prefix(place);
        name.strip_prefix(&prefix).map(|rest| (prefix.len(), place, rest.to_owned()))
    });
    let (_, place, rest) =
        fits.max().ok_or_else(|| ErrorData::invalid_params("no such prompt", None))?;
    let connection = gateway.server(place).and_then(|server| server.connection());
    Ok((connection.ok_or_else(|| error(Trouble::Gone))?, rest))
}

async fn ask(
    gateway: &Gateway,
    connection: &Connection,
    request: ClientRequest,
    flight: &Arc<Flight>,
) -> Result<Value, ErrorData> {
    let _turn = turn(gateway, connection, flight).await?;
    connection.ask(request, Some(flight), &flight.cancel).await.map_err(error)
}

/// Waits until the client reads what it has asked for, and few enough requests are out to a server
/// that their answers together are not too large.
async fn turn<'c>(
    gateway: &Gateway,
    connection: &'c Connection,
    flight: &Flight,
) -> Result<SemaphorePermit<'c>, ErrorData> {
    let turn = async {
        let turn = connection.passing.acquire().await;
        gateway.client.outbox.room().await;
        turn.map_err(|_| error(Trouble::Gone))
    };
    tokio::select! {
        turn = turn => turn,
        () = flight.cancel.cancelled() => Err(error(Trouble::Cancelled)),
        () = gateway.closing.cancelled() => Err(error(Trouble::Gone)),
    }
}

/// What a client is told: a server's own error as it is.
pub(crate) fn error(trouble: Trouble) -> ErrorData {
    match trouble {
        Trouble::Refused(error) => error,
        trouble => ErrorData::new(ErrorCode::INTERNAL_ERROR, trouble.to_string(), None),
    }
}
