//! Prompts, resources and completions: reads of tools of their own.
//!
//! Each is a call that the kernel decides and records, by the token, the policy and the budget. A
//! list shows only what is granted; of what is not, the server is not even asked.

use std::{collections::BTreeSet, sync::Arc};

use rmcp::ErrorData;
use rmcp::model::{
    CompleteRequestParams, GetPromptRequestParams, JsonObject, Prompt, ReadResourceRequestParams,
    Reference, RequestId, Resource, ResourceTemplate,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use syscap::format::{Reason, ToolId};
use syscap::provide::Standing;
use tokio::task::JoinSet;

use crate::gateway::Gateway;
use crate::governed::flight::{Flight, RetryInput, random};
use crate::governed::kernelside::NoAnswer;
use crate::governed::{calls, names, refusal, result};
use crate::token::next;
use crate::upstream::Trouble;
use crate::upstream::lists::ListMethod;
use crate::upstream::method::Method;

/// A request of the client's.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) flight: Arc<Flight>,
    /// The prefix of the idempotency keys of its calls.
    key: String,
}

impl Asked {
    pub(crate) fn new(gateway: &Gateway, flight: Flight, id: &RequestId) -> Self {
        Self { flight: Arc::new(flight), key: calls::key(&gateway.run, id) }
    }

    /// A part of it, with calls of its own.
    pub(crate) fn part(&self, gateway: &Gateway) -> Self {
        let key = format!("{}:p{}", gateway.run, random());
        Self { flight: Arc::clone(&self.flight), key }
    }
}

/// Why there is no answer.
enum Unserved {
    /// The kernel did not let it through, or the call came to nothing.
    Refused(ErrorData),
    /// The server says no.
    ByServer(ErrorData),
}

impl From<Unserved> for ErrorData {
    fn from(unserved: Unserved) -> Self {
        match unserved {
            Unserved::Refused(error) | Unserved::ByServer(error) => error,
        }
    }
}

/// The prompts of all servers that are granted and can be called, as they are pinned.
pub(crate) async fn prompts(gateway: &Arc<Gateway>) -> Result<Vec<Prompt>, ErrorData> {
    expect_going(gateway).await?;
    let (catalog, granted) = (gateway.catalog(), gateway.granted());
    let mut prompts: Vec<Prompt> = Vec::new();
    for (id, offered) in catalog.all() {
        let shown = granted.contains(id) && offered.standing == Standing::Ready;
        if let Some(prompt) = offered.definition.prompt.as_ref().filter(|_| shown) {
            let mut prompt = prompt.clone();
            prompt.name = format!("{}{}", gateway.prefix(offered.server), prompt.name);
            prompts.push(prompt);
        }
    }
    prompts.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(prompts)
}

/// All resources of the servers of which reading is granted.
pub(crate) async fn resources(
    gateway: &Arc<Gateway>,
    asked: &Asked,
) -> Result<Vec<Resource>, ErrorData> {
    let mut resources = Vec::new();
    for (place, value) in every(gateway, ListMethod::Resources, asked).await? {
        if let Some(resource) = read::<Resource>(value) {
            gateway.routes.learn(&resource.uri, place);
            resources.push(resource);
        }
    }
    Ok(resources)
}

/// All templates of resources.
pub(crate) async fn templates(
    gateway: &Arc<Gateway>,
    asked: &Asked,
) -> Result<Vec<ResourceTemplate>, ErrorData> {
    let all = every(gateway, ListMethod::Templates, asked).await?;
    Ok(all.into_iter().filter_map(|(_, value)| read(value)).collect())
}

fn read<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

pub(crate) async fn prompt(
    gateway: &Arc<Gateway>,
    params: GetPromptRequestParams,
    asked: &Asked,
) -> Result<Value, ErrorData> {
    let id = match whose(gateway, &params.name) {
        Some((id, _, _)) => id.to_string(),
        // The kernel says that there is none, on the record.
        None => names::nowhere(&params.name),
    };
    let args = params.arguments.unwrap_or_default();
    Ok(one(gateway, &id, &params.name, &args, asked, 0).await?)
}

/// A resource: of the server that listed it, else of the first that has it.
pub(crate) async fn resource(
    gateway: &Arc<Gateway>,
    params: ReadResourceRequestParams,
    asked: &Asked,
) -> Result<Value, ErrorData> {
    first(gateway, Method::Read, &params.uri, &uri(&params.uri), asked).await.map(|(_, v)| v)
}

/// Completions of an argument.
pub(crate) async fn complete(
    gateway: &Arc<Gateway>,
    mut params: CompleteRequestParams,
    asked: &Asked,
) -> Result<Value, ErrorData> {
    params.meta = None;
    let place = match &mut params.r#ref {
        Reference::Prompt(prompt) => {
            let none = || ErrorData::invalid_params("no such prompt", None);
            let (_, place, name) = whose(gateway, &prompt.name).ok_or_else(none)?;
            prompt.name = name;
            Some(place)
        }
        Reference::Resource(_) => None,
        _ => return Err(ErrorData::invalid_params("no such reference", None)),
    };
    let uri = match &params.r#ref {
        Reference::Resource(resource) => resource.uri.clone(),
        _ => String::new(),
    };
    let Ok(Value::Object(args)) = serde_json::to_value(params) else {
        return Err(ErrorData::invalid_params("it can't be said", None));
    };
    let Some(place) = place else {
        return first(gateway, Method::Complete, &uri, &args, asked).await.map(|(_, v)| v);
    };
    let id = of(gateway, place, Method::Complete);
    let id = id.ok_or_else(|| ErrorData::invalid_params("the server completes nothing", None))?;
    Ok(one(gateway, id.as_str(), id.as_str(), &args, asked, 0).await?)
}

/// Has a resource watched; the server that does.
pub(crate) async fn subscribe(
    gateway: &Arc<Gateway>,
    wanted: &str,
    asked: &Asked,
) -> Result<usize, ErrorData> {
    first(gateway, Method::Subscribe, wanted, &uri(wanted), asked).await.map(|(place, _)| place)
}

fn uri(uri: &str) -> JsonObject {
    [(String::from("uri"), Value::from(uri))].into_iter().collect()
}

/// Asks the server that listed a URI, else each in turn, until one has an answer. If no server may
/// be asked, one is asked all the same: then the refusal says why.
async fn first(
    gateway: &Arc<Gateway>,
    method: Method,
    uri: &str,
    args: &JsonObject,
    asked: &Asked,
) -> Result<(usize, Value), ErrorData> {
    let granted = gateway.granted();
    let known = gateway.routes.find(uri);
    let places = match known {
        Some(place) => place..place.saturating_add(1),
        None => 0..gateway.servers.len(),
    };
    let has = |place| of(gateway, place, method).map(|id| (place, id));
    let mut servers: Vec<(usize, ToolId)> = places.filter_map(has).collect();
    if servers.iter().any(|(_, id)| granted.contains(id)) {
        servers.retain(|(_, id)| granted.contains(id));
    } else {
        servers.truncate(1);
    }
    let mut last = ErrorData::resource_not_found("no server has it", None);
    for (part, (place, id)) in servers.into_iter().enumerate() {
        match one(gateway, id.as_str(), id.as_str(), args, asked, part).await {
            Ok(value) => return Ok((place, value)),
            Err(Unserved::ByServer(error)) => last = error,
            Err(Unserved::Refused(error)) => return Err(error),
        }
    }
    Err(last)
}

/// A list of every server of which it is granted, side by side. One that gives none is passed
/// over, where there are others.
async fn every(
    gateway: &Arc<Gateway>,
    method: ListMethod,
    asked: &Asked,
) -> Result<Vec<(usize, Value)>, ErrorData> {
    expect_going(gateway).await?;
    let granted = gateway.granted();
    let what = if method == ListMethod::Templates { "templates" } else { "resources" };
    let mut lists = JoinSet::new();
    for place in 0..gateway.servers.len() {
        let Some(id) = of(gateway, place, Method::List).filter(|id| granted.contains(id)) else {
            continue;
        };
        let (gateway, asked) = (Arc::clone(gateway), asked.clone());
        lists.spawn(async move {
            let args = json!({"of": what}).as_object().cloned().unwrap_or_default();
            let list = one(&gateway, id.as_str(), id.as_str(), &args, &asked, place).await;
            (place, list)
        });
    }
    let (mut all, mut given, mut refused) = (Vec::new(), BTreeSet::new(), None);
    while let Some(list) = lists.join_next().await {
        match list {
            Ok((place, Ok(mut list))) => {
                given.insert(place);
                if let Some(Value::Array(entries)) = list.get_mut(method.key()).map(Value::take) {
                    all.extend(entries.into_iter().map(|value| (place, value)));
                }
            }
            Ok((_, Err(unserved))) => refused = Some(ErrorData::from(unserved)),
            Err(_) => refused = Some(ErrorData::internal_error("the gateway broke off", None)),
        }
    }
    all.sort_by_key(|(place, _)| *place);
    match refused {
        Some(error) if given.is_empty() => Err(error),
        _ => Ok(all),
    }
}

/// Checks that anything may pass at all: a frozen agent, or one without a valid token, lists
/// nothing.
pub(crate) async fn expect_going(gateway: &Arc<Gateway>) -> Result<(), ErrorData> {
    match gateway.stopped().await {
        Ok(None) => Ok(()),
        Ok(Some(reason)) => {
            let next = match gateway.open().filter(|_| reason != Reason::Frozen) {
                Some(open) => next::ended(gateway, open.session.token().id, reason).await,
                None => next::frozen(gateway),
            };
            Err(refusal::stopped(reason, &next))
        }
        Err(error) => Err(ErrorData::internal_error(error.tell().to_owned(), None)),
    }
}

/// The id of a single method of a server, if the server has it.
fn of(gateway: &Gateway, place: usize, method: Method) -> Option<ToolId> {
    let id = names::single(&gateway.server(place)?.name, method)?;
    gateway.catalog().offered(&id).is_some().then_some(id)
}

/// The prompt that clients call so, its server, and the name that it has there.
fn whose(gateway: &Gateway, name: &str) -> Option<(ToolId, usize, String)> {
    let catalog = gateway.catalog();
    let fits = catalog.all().iter().filter_map(|(id, offered)| {
        let prompt = offered.definition.prompt.as_ref()?;
        let prefix = gateway.prefix(offered.server);
        let same = name.strip_prefix(&prefix) == Some(&prompt.name);
        same.then(|| (prefix.len(), id.clone(), offered.server, prompt.name.clone()))
    });
    fits.max().map(|(_, id, place, name)| (id, place, name))
}

/// One call of what `called` names for the client.
async fn one(
    gateway: &Arc<Gateway>,
    id: &str,
    called: &str,
    args: &JsonObject,
    asked: &Asked,
    part: usize,
) -> Result<Value, Unserved> {
    let key = format!("{}-{part}", asked.key);
    let made = calls::make(gateway, id, args, Arc::clone(&asked.flight), &key).await;
    let lost = |none: NoAnswer| Unserved::Refused(ErrorData::internal_error(none.tell(), None));
    let outcome = made.map_err(lost)?;
    match outcome.output() {
        Err(reason) => {
            let aside = next::aside(gateway, id, &outcome, &key).await;
            let (error, record) = (outcome.delivered.item(), outcome.record);
            let refused = refusal::RefusedCall { reason, error, record };
            let (catalog, granted) = (gateway.catalog(), gateway.granted());
            let known =
                refusal::Known { home: &gateway.hidden, catalog: &catalog, granted: &granted };
            Err(Unserved::Refused(refusal::error(refused, aside, called, known)))
        }
        Ok(output) => result::other(output).map(Value::Object).map_err(Unserved::ByServer),
    }
}

/// A request of the client's with its input, where it brings some.
pub(crate) fn input(
    responses: Option<rmcp::model::InputResponses>,
    state: Option<String>,
) -> Option<RetryInput> {
    let input = RetryInput { responses, state };
    (input != RetryInput::default()).then_some(input)
}

/// The error for a client: a server's own error as it is.
pub(crate) fn error(trouble: Trouble) -> ErrorData {
    match trouble {
        Trouble::Refused(error) => error,
        trouble => ErrorData::internal_error(trouble.to_string(), None),
    }
}
